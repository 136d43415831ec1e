"""Read a configuration of Keras: layers, their settings, and their inputs."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

from daskdl.errors import ModelFileError

#: Layers of a model, and calls of one, at most.
_MOST = 3_000
#: A result of a layer: its name, which call of it, and which of the results.
Place = tuple[str, int, int]


class Step(NamedTuple):
    """One call of a layer."""

    name: str
    kind: str
    config: dict[str, Any]
    call: int
    given: list[Place]


class Topology(NamedTuple):
    """Calls in an order in which each finds its inputs, and the places of inputs and outputs."""

    steps: list[Step]
    inputs: list[Place]
    outputs: list[Place]


def topology(config: dict[str, Any], where: str) -> Topology:
    """Return the layers of a Sequential or functional model.

    Raises
    ------
    ModelFileError
        When the model is of a class of its own, has models inside, or is damaged.
    """
    kind = config.get("class_name")
    if kind not in ("Sequential", "Functional", "Model"):
        raise ModelFileError(
            f"{where}: expected a Sequential or functional model, found {str(kind)[:60]!r}; build "
            "its layers in daskdl and read the weights with interop.keras.load_weights"
        )
    inner = config.get("config")
    layers = inner if isinstance(inner, list) else (inner or {}).get("layers")
    if not isinstance(layers, list) or not 1 <= len(layers) <= _MOST:
        _damaged(where, "expected layers")
    parts = [_layer(layer, where) for layer in layers]
    if kind == "Sequential":
        return _sequential(parts, where)
    assert isinstance(inner, dict)
    return _functional(layers, parts, inner, where)


def _damaged(where: str, sentence: str) -> NoReturn:
    raise ModelFileError(
        f"{where}: its configuration is damaged: {sentence}; copy or save it again"
    )


def _layer(layer: Any, where: str) -> tuple[str, str, dict[str, Any]]:
    """Return a layer's name, kind and settings."""
    if not isinstance(layer, dict) or not isinstance(layer.get("config"), (dict, list)):
        _damaged(where, "a layer has no settings")
    kind, config = str(layer.get("class_name")), layer["config"]
    if kind in ("Sequential", "Functional", "Model") or isinstance(config, list):
        raise ModelFileError(
            f"{where}: layer {str(layer.get('name'))[:60]!r} is a model of its own, which is not "
            "supported; put its layers into one model"
        )
    return str(layer.get("name") or config.get("name") or kind), kind, config


def _sequential(parts: list[tuple[str, str, dict[str, Any]]], where: str) -> Topology:
    steps: list[Step] = []
    if parts[0][1] != "InputLayer":
        shape = parts[0][2].get("batch_input_shape") or parts[0][2].get("batch_shape")
        steps.append(Step("input", "InputLayer", {"batch_shape": shape}, 0, []))
    for name, kind, config in parts:
        given = [(steps[-1].name, 0, 0)] if steps else []
        steps.append(Step(name, kind, config, 0, given))
    _once([step.name for step in steps], where)
    return Topology(steps, [(steps[0].name, 0, 0)], [(steps[-1].name, 0, 0)])


def _once(names: list[str], where: str) -> None:
    if len(set(names)) != len(names):
        _damaged(where, "names of layers come twice")


def _functional(
    layers: list[Any],
    parts: list[tuple[str, str, dict[str, Any]]],
    inner: dict[str, Any],
    where: str,
) -> Topology:
    _once([name for name, *_ in parts], where)
    waiting: list[Step] = []
    for layer, (name, kind, config) in zip(layers, parts, strict=True):
        nodes = layer.get("inbound_nodes") or []
        if kind == "InputLayer":
            nodes = [[]]
        if not isinstance(nodes, list) or len(waiting) + len(nodes) > _MOST:
            _damaged(where, f"layer {name!r}: expected calls")
        waiting += [
            Step(name, kind, config, i, _places(node, where)) for i, node in enumerate(nodes)
        ]
    steps: list[Step] = []
    made: set[tuple[str, int]] = set()
    while waiting:
        ready = [s for s in waiting if all(place[:2] in made for place in s.given)]
        if not ready:
            _damaged(where, f"layer {waiting[0].name!r} is given what no layer computes")
        steps += ready
        made.update((s.name, s.call) for s in ready)
        waiting = [s for s in waiting if (s.name, s.call) not in made]
    inputs, outputs = (_ends(inner.get(f"{end}_layers"), where) for end in ("input", "output"))
    for place in (*inputs, *outputs):
        if place[:2] not in made:
            _damaged(where, f"there is no layer {place[0]!r}")
    return Topology(steps, inputs, outputs)


def _places(node: Any, where: str) -> list[Place]:
    """Return what one call is given: of Keras 3 found in its arguments, else listed."""
    found: list[Place] = []
    if isinstance(node, dict):
        waiting = [node.get("args")]
        count = 0
        while waiting:
            value = waiting.pop(0)
            count += 1
            if count > _MOST:
                _damaged(where, "a call has too many arguments")
            if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
                config = value.get("config")
                history = config.get("keras_history") if isinstance(config, dict) else None
                found.append(_place(history, where))
            elif isinstance(value, (list, tuple)):
                waiting[:0] = value
        return found
    if isinstance(node, list) and node and isinstance(node[0], str):
        node = [node]
    if not isinstance(node, list):
        _damaged(where, "a call has no arguments")
    return [_place(part[:3] if isinstance(part, list) else part, where) for part in node]


def _place(value: Any, where: str) -> Place:
    if (
        not isinstance(value, list)
        or len(value) != 3
        or not isinstance(value[0], str)
        or not all(type(n) is int and n >= 0 for n in value[1:])
    ):
        _damaged(where, "a result is not named by its layer, call and place")
    return value[0], value[1], value[2]


def _ends(value: Any, where: str) -> list[Place]:
    if isinstance(value, list) and value and isinstance(value[0], str):
        value = [value]
    if not isinstance(value, list) or not value:
        _damaged(where, "expected inputs and outputs")
    return [_place(part, where) for part in value]
