"""Read a configuration of Keras: layers, their settings, and their inputs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.guard import damaged

#: Largest number of layers in a model and of their calls; largest depth of nested models.
_MOST, _DEEPEST = 3_000, 20
_MODELS = ("Sequential", "Functional", "Model")
#: An argument of calls that is refused.
MASKED = "a mask, such as mask_zero=True of an Embedding makes"
#: Kind of a step without inputs: a number that an operation has as operand.
NUMBER = "(number)"
#: Names of the tensors that a layer takes, for layers that are called with names.
_NAMED = {"MultiHeadAttention": ("query", "value", "key")}
#: Classes of arrays of Keras 3.
_ARRAYS = ("__numpy__", "__tensor__")
#: Layers that Keras 3 calls with training=True, which its predict() overrides.
_PREPROCESSING = ("Random", "CenterCrop", "Resizing")
#: Operations of Keras 3 and functions of Keras 2 whose operands may be numbers: ``x + 3``.
_OPERATIONS = {
    "Add": "Add", "Subtract": "Subtract", "Multiply": "Multiply",
    "Divide": "Divide", "TrueDivide": "Divide", "NotEqual": "NotEqual", "Any": "Any",
    "LogicalOr": "LogicalOr",
}  # fmt: skip
_FUNCTIONS = {
    "__operators__.add": "Add", "math.add": "Add", "math.subtract": "Subtract",
    "math.multiply": "Multiply", "math.divide": "Divide", "math.truediv": "Divide",
}  # fmt: skip
#: A result of a layer: the layer's name, the number of the call, and of the result.
Place = tuple[str, int, int]


class Step(NamedTuple):
    """Call number ``call`` of a layer; a layer of a nested model is named "outer/inner".

    If it is ``masked``, the last of ``reads`` is a mask. The file has the weights under ``owner``,
    a layer of the outermost model, in the group ``group``, such as "layers/dense"; it is "" if the
    layer is the owner.
    """

    name: str
    kind: str
    config: dict[str, Any]
    call: int
    reads: list[Place]
    owner: str
    group: str = ""
    masked: bool = False


class Topology(NamedTuple):
    """Calls, each after its inputs, and the classes of the outermost model's layers.

    Keys of inputs and outputs are the model's names for them, or numbers.
    """

    steps: list[Step]
    inputs: dict[Any, Place]
    outputs: dict[Any, Place]
    kinds: dict[str, str]


def topology(config: dict[str, Any], where: str) -> Topology:
    """Return the layers of a Sequential or functional model and of nested models.

    Refuse subclassed models, and models that pass more than tensors to layers.
    """
    kind = config.get("class_name")
    if kind not in _MODELS:
        raise ModelFileError(
            f"{where}: expected a Sequential or functional model, found {str(kind)[:60]!r}; build "
            "its layers in daskdl and read the weights with interop.keras.load_weights"
        )
    model = _Model(config, where)
    return Topology(_in_order(model.steps, where), model.inputs, model.outputs, model.kinds)


def snake(name: Any) -> str:
    """Return Keras's group name for a class: "conv2d_transpose" for "Conv2DTranspose"."""
    name = re.sub(r"\W+", "", str(name))
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def numbered(kinds: list[str]) -> list[str]:
    """Return Keras's group names for layers of these classes, in order."""
    counts: Counter[str] = Counter()
    names = []
    for base in map(snake, kinds):
        names.append(f"{base}_{counts[base]}" if counts[base] else base)
        counts[base] += 1
    return names


def _operation(layer: dict[str, Any]) -> str | None:
    """Return the kind of an arithmetic operation, whose operands may be numbers, if it is one."""
    kind, config = layer.get("class_name"), layer.get("config")
    if kind == "TFOpLambda" and isinstance(config, dict):
        return _FUNCTIONS.get(str(config.get("function")))
    # An .h5 does not say whether "Add" is a layer or an operation; only this takes numbers.
    return _OPERATIONS.get(str(kind)) if ".ops" in str(layer.get("module", ".ops")) else None


def _empty(value: Any) -> bool:
    """Whether an argument of a call is none, or consists of such arguments."""
    parts = value.values() if isinstance(value, dict) else value
    return value in (None, False) or (isinstance(value, (dict, list)) and all(map(_empty, parts)))


def _damaged(where: str, sentence: str) -> NoReturn:
    raise damaged(where, f"its configuration is damaged: {sentence}")


class _Model:
    """The calls of one model's layers; each call of a nested model adds its layers' calls."""

    def __init__(
        self, config: dict[str, Any], where: str, path: str = "", owner: str = "",
        group: str = "", depth: int = 0,
    ) -> None:  # fmt: skip
        self.where, self.path, self.owner, self.group = where, path, owner, group
        self.depth, self.steps = depth, list[Step]()
        #: Results of nested models, as results of their layers.
        self.alias: dict[Place, Place] = {}
        if depth > _DEEPEST:
            _damaged(where, "models lie in each other too deep")
        inner = config.get("config")
        layers = inner if isinstance(inner, list) else (inner or {}).get("layers")
        if not isinstance(layers, list) or not 1 <= len(layers) <= _MOST:
            _damaged(where, "expected layers")
        if not all(isinstance(one, dict) and isinstance(one.get("config"), (dict, list))
                   for one in layers):  # fmt: skip
            _damaged(where, "a layer has no settings")
        self.inputs: dict[Any, Place] = {}
        self.outputs: dict[Any, Place] = {}
        self.groups = numbered([str(one.get("class_name")) for one in layers])
        names = [self._name(layer) for layer in layers]
        self.kinds = {n: str(one.get("class_name")) for n, one in zip(names, layers, strict=True)}
        if config.get("class_name") == "Sequential":
            self._sequential(layers, names)
        else:
            self._functional(layers, names, inner or {})
        self.outputs = {key: self.resolved(place) for key, place in self.outputs.items()}
        self.steps = [s._replace(reads=[*map(self.resolved, s.reads)]) for s in self.steps]

    def resolved(self, place: Place) -> Place:
        """Return the layer's result behind a result of a nested model."""
        while place in self.alias:
            place = self.alias[place]
        return place

    def _name(self, layer: dict[str, Any]) -> str:
        config = layer["config"]
        configured = config.get("name") if isinstance(config, dict) else None
        return self.path + str(layer.get("name") or configured or layer.get("class_name"))

    def _sequential(self, layers: list[Any], names: list[str]) -> None:
        last: list[Place] = []
        if layers[0].get("class_name") != "InputLayer":
            first = layers[0]["config"] if isinstance(layers[0]["config"], dict) else {}
            shape = first.get("batch_input_shape") or first.get("batch_shape")
            name = f"{self.path}input"
            self.steps.append(Step(name, "InputLayer", {"batch_shape": shape}, 0, [], name))
            last = [(name, 0, 0)]
        else:
            name = names[0]
        self._once([name, *names] if last else names)
        for i, layer in enumerate(layers):
            self._add(layer, names[i], i, 0, last)
            last = [(names[i], 0, 0)]
        self.inputs = {0: (name, 0, 0)}
        self.outputs = {0: last[0]}

    def _functional(self, layers: list[Any], names: list[str], inner: dict[str, Any]) -> None:
        self._once(names)
        for i, layer in enumerate(layers):
            nodes = layer.get("inbound_nodes") or []
            nodes = [[]] if layer.get("class_name") == "InputLayer" else nodes
            if not isinstance(nodes, list):
                _damaged(self.where, f"layer {names[i]!r}: expected calls")
            takes_numbers = _operation(layer) is not None
            for call, node in enumerate(nodes):
                reads = self._places(node, names[i], takes_numbers)
                mask = self._mask(node)
                self._add(layer, names[i], i, call, reads + mask, bool(mask))
        self.inputs = self._ends(inner.get("input_layers"))
        self.outputs = self._ends(inner.get("output_layers"))
        made = {(step.name, step.call) for step in self.steps}
        new = any(isinstance(n, dict) for one in layers for n in one.get("inbound_nodes") or [])
        for key, (name, call, k) in self.outputs.items() if new else ():
            # Here, unlike in calls, Keras 3 counts the call that made such a model.
            if self.kinds.get(name) in ("Functional", "Model") and call:
                self.outputs[key] = name, call - 1, k
        for place in (*self.inputs.values(), *self.outputs.values()):
            if place not in self.alias and place[:2] not in made:
                _damaged(self.where, f"there is no layer {place[0]!r}")

    def _once(self, names: list[str]) -> None:
        if len(set(names)) != len(names):
            _damaged(self.where, "names of layers come twice")

    def _add(
        self, layer: dict[str, Any], name: str, number: int, call: int, reads: list[Place],
        masked: bool = False,
    ) -> None:  # fmt: skip
        """Add a call of a layer; for a nested model add its layers' calls."""
        kind, config = str(layer.get("class_name")), layer["config"]
        home, owner = str(layer.get("module") or "keras"), self.owner or name
        group = f"{self.group}layers/{self.groups[number]}" if self.owner else ""
        if operation := _operation(layer):
            more = {} if kind == "TFOpLambda" else config
            kind, config = operation, {"numpy": kind == "TFOpLambda" or ".ops" in home, **more}
        elif (
            not home.startswith(("keras", "tf_keras", "tensorflow.", "builtins")) or ".ops" in home
        ):
            kind = f"{home[:60]}.{kind}"  # not in any table
        if kind not in _MODELS:
            if not isinstance(config, dict):
                _damaged(self.where, f"layer {name!r} has no settings")
            self.steps.append(Step(name, kind, config, call, reads, owner, group, masked))
        else:
            lead = f"{group}/" if group else ""
            model = _Model(layer, self.where, f"{name}/", owner, lead, self.depth + 1)
            if masked:
                self._plain({"mask": True}, name)
            if len(model.inputs) != len(reads) or not all(isinstance(k, int) for k in model.inputs):
                raise ModelFileError(
                    f"{self.where}: model {name!r} in the model: expected {len(model.inputs)} "
                    f"inputs in their order, found {len(reads)}"
                )

            def renumbered(place: Place) -> Place:
                return place[0], place[1] + call * _MOST, place[2]

            entries = {(p[0], p[1]) for p in model.inputs.values()}
            for place, value in zip(model.inputs.values(), reads, strict=True):
                self.alias[renumbered(place)] = value
            for k, place in enumerate(model.outputs.values()):
                self.alias[name, call, k] = renumbered(place)
            self.steps += [
                s._replace(call=s.call + call * _MOST, reads=[*map(renumbered, s.reads)])
                for s in model.steps if (s.name, s.call) not in entries
            ]  # fmt: skip
        if len(self.steps) > _MOST:
            _damaged(self.where, f"layer {name!r}: expected up to {_MOST} calls")

    def _places(self, node: Any, name: str, takes_numbers: bool) -> list[Place]:
        """Return the inputs of one call: Keras 3 has them in its arguments, Keras 2 in a list."""
        places: list[Place] = []
        if isinstance(node, dict):
            more = node.get("kwargs")
            if isinstance(more, dict) and self.kinds[name].startswith(_PREPROCESSING):
                more = {key: value for key, value in more.items() if key != "training"}
            if isinstance(more, dict) and self._mask(node):
                more = {key: value for key, value in more.items() if key != "mask"}
            tensors, more = self._named(more, name)
            self._plain(more, name)
            args = node.get("args")
            if tensors and isinstance(args, list):
                args = [*args, *tensors]
            if not takes_numbers or not isinstance(args, list):
                return [*self._tensors(args, name)]
            for value in args:  # a list of numbers, unlike one of tensors, is one array
                number = self._number(value, name)
                places += [number] if number else self._tensors(value, name)
            return places
        if isinstance(node, list) and node and isinstance(node[0], str):
            node = [node]
        if not isinstance(node, list):
            _damaged(self.where, "a call has no arguments")
        for part in node:
            place = part[:3] if isinstance(part, list) else part
            more = part[3] if isinstance(part, list) and len(part) == 4 else None
            if takes_numbers and isinstance(more, dict) and "y" in more:
                first = place[2] if place[:2] == ["_CONSTANT_VALUE", -1] else place
                places += [self._operand(one, name) for one in (first, more.get("y"))]
                self._plain({key: value for key, value in more.items() if key != "y"}, name)
            else:
                tensors, more = self._named(more, name)
                self._plain(more, name)
                places += [self._place(one) for one in (place, *tensors)]
        return places

    def _mask(self, node: Any) -> list[Place]:
        """Return the mask with which Keras 3 calls a layer, if it is a tensor."""
        more = node.get("kwargs") if isinstance(node, dict) else None
        mask = more.get("mask") if isinstance(more, dict) else None
        if not isinstance(mask, dict) or mask.get("class_name") != "__keras_tensor__":
            return []
        return [self._place((mask.get("config") or {}).get("keras_history"))]

    def _named(self, more: Any, name: str) -> tuple[list[Any], Any]:
        """Return the tensors among the named arguments of a call, and the other arguments."""
        names = _NAMED.get(self.kinds[name], ())
        if not isinstance(more, dict) or not names:
            return [], more
        tensors = [more[key] for key in names if not _empty(more.get(key))]
        return tensors, {key: value for key, value in more.items() if key not in names}

    def _operand(self, value: Any, name: str) -> Place:
        number = self._number(value, name)
        if not number and not (isinstance(value, list) and value and isinstance(value[0], str)):
            self._plain(value, name)
        return number or self._place(value)

    def _number(self, value: Any, name: str) -> Place | None:
        """Add a number or an array as a step of its own; None for a tensor."""
        if isinstance(value, dict) and value.get("class_name") in _ARRAYS:
            value = (value.get("config") or {}).get("value")
        array = np.asarray(value)
        if array.dtype.kind not in "if" or not array.size:
            return None
        step = f"{name}/{len(self.steps)}"
        self.steps.append(Step(step, NUMBER, {"value": value}, 0, [], self.owner or name))
        return step, 0, 0

    def _tensors(self, value: Any, name: str) -> Iterator[Place]:
        waiting, count = [value], 0
        while waiting:
            value, count = waiting.pop(0), count + 1
            if count > _MOST:
                _damaged(self.where, "a call has too many arguments")
            if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
                config = value.get("config")
                history = config.get("keras_history") if isinstance(config, dict) else None
                yield self._place(history)
            elif isinstance(value, (list, tuple)):
                waiting[:0] = value
            else:
                self._plain(value, name)

    def _plain(self, value: Any, name: str) -> None:
        """Refuse an argument of a call that is no tensor and could change the results."""
        if not _empty(value):
            has_mask = isinstance(value, dict) and not _empty(value.get("mask"))
            arguments = MASKED if has_mask else f"more than tensors in order, {str(value)[:60]}"
            raise ModelFileError(
                f"{self.where}: layer {name!r}, {self.kinds[name]}, is called with {arguments}, "
                "which is not supported; export the model as ONNX"
            )

    def _place(self, value: Any) -> Place:
        if (
            not isinstance(value, list)
            or len(value) != 3
            or not isinstance(value[0], str)
            or not all(type(n) is int and 0 <= n < _MOST for n in value[1:])
        ):
            _damaged(self.where, "a result is not named by its layer, call and place")
        return self.path + value[0], value[1], value[2]

    def _ends(self, value: Any) -> dict[Any, Place]:
        if isinstance(value, list) and value and isinstance(value[0], str):
            value = [value]
        if isinstance(value, list):
            value = dict(enumerate(value))
        if not isinstance(value, dict) or not value:
            _damaged(self.where, "expected inputs and outputs")
        return {key: self._place(value[key]) for key in sorted(value)}  # in Keras's order


def _in_order(waiting: list[Step], where: str) -> list[Step]:
    """Return the calls, each after the calls whose results it takes."""
    steps: list[Step] = []
    made: set[tuple[str, int]] = set()
    while waiting:
        ready = [s for s in waiting if all(place[:2] in made for place in s.reads)]
        if not ready:
            _damaged(where, f"layer {waiting[0].name!r} is given what no layer computes")
        steps += ready
        made.update((s.name, s.call) for s in ready)
        waiting = [s for s in waiting if (s.name, s.call) not in made]
    return steps
