"""Keras' recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.interop.building import Value
from daskdl.interop.keras.layers import Layer, function_of, layer
from daskdl.tensor import Array

#: ONNX' name, and its gates in the order of Keras'.
_KINDS = {"LSTM": ("LSTM", (0, 3, 1, 2)), "GRU": ("GRU", (0, 1, 2)), "SimpleRNN": ("RNN", (0,))}
#: Shares that are dropped in training are not, here.
_KEYS = (
    "units activation recurrent_activation use_bias unit_forget_bias dropout recurrent_dropout "
    "implementation zero_output_for_mask unroll return_sequences go_backwards reset_after "
    "use_cudnn input_dim input_length"
)
_OFF = "stateful return_state time_major"
_FUNCTIONS = {"tanh": "Tanh", "sigmoid": "Sigmoid", "relu": "Relu", "hard_sigmoid": "HardSigmoid"}


def _rows(array: Array, order: tuple[int, ...]) -> Array:
    """Return (..., gates x units) as (gates x units, ...), gates in another order."""
    parts = np.split(array, len(order), axis=-1)
    return np.concatenate([parts[i] for i in order], -1).T


def _settings(of: Layer, config: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return ONNX' settings of one direction, which ones that are not supported are refused of."""
    names = ["activation"] if kind == "SimpleRNN" else ["recurrent_activation", "activation"]
    defaults = {"activation": "tanh", "recurrent_activation": "sigmoid"}
    functions = [function_of(of, config.get(name, defaults[name])) for name in names]
    if any(name not in _FUNCTIONS for name in functions):
        of.fail(f"expected activations of {', '.join(_FUNCTIONS)}, found {functions}")
    functions += functions[-1:] if kind == "LSTM" else []
    settings: dict[str, Any] = {"functions": tuple(_FUNCTIONS[name] for name in functions)}
    if kind == "GRU":
        # Keras 2's default was False, and is in every file of Keras 2 with tf.keras and later.
        settings["reset"] = int(bool(config.get("reset_after", of.version >= 3)))
    return settings


def _direction(
    of: Layer, arrays: list[Array], kind: str, bias: bool, reset: int
) -> tuple[Array, Array, Array]:
    """Return the weights of one direction as ONNX has them."""
    order = _KINDS[kind][1]
    gates = len(order)
    if len(arrays) != 2 + bias or any(a.ndim != 2 or a.shape[1] % gates for a in arrays[:2]):
        of.fail(f"expected kernels of {gates} gates, found {[a.shape for a in arrays]}")
    units = arrays[1].shape[0]
    if arrays[0].shape[1] != gates * units or arrays[1].shape[1] != gates * units:
        of.fail(f"expected kernels of {gates} gates, found {[a.shape for a in arrays]}")
    both = np.zeros((2, gates * units), np.float32)
    if bias:
        bias_rows = arrays[2].reshape(-1, gates * units) if arrays[2].size else both
        if arrays[2].size != (1 + reset) * gates * units:
            of.fail(f"expected a bias of {gates} gates, found {arrays[2].shape}")
        both[: len(bias_rows)] = bias_rows
    ends = np.concatenate([_rows(part, order) for part in both])
    return _rows(arrays[0], order), _rows(arrays[1], order), ends


def _run(of: Layer, config: dict[str, Any], kind: str, arrays: list[Array], both: bool) -> Value:
    settings = _settings(of, config, kind)
    bias = bool(config.get("use_bias", True))
    half = len(arrays) // 2 if both else len(arrays)
    pieces = [arrays[:half], arrays[half:]] if both else [arrays]
    reset = settings.get("reset", 0)
    directions = [_direction(of, part, kind, bias, reset) for part in pieces]
    if len({tuple(a.shape for a in part) for part in directions}) != 1:
        of.fail("expected both directions to be of one size")
    names = [
        of.weight(weight_name, np.stack([part[i] for part in directions]).astype(np.float32))
        for i, weight_name in enumerate(("kernel", "recurrent_kernel", "bias"))
    ]
    x = of.build.last(of.x)
    if x.rank != 3:
        of.fail(f"expected sequences (N, T, C), found {x.rank} axes")
    backwards = bool(config.get("go_backwards"))
    attributes: dict[str, Any] = {
        "hidden_size": directions[0][1].shape[1],
        "direction": "bidirectional" if both else "reverse" if backwards else "forward",
        "activations": None,
    }
    default = {
        "LSTM": ("Sigmoid", "Tanh", "Tanh"),
        "GRU": ("Sigmoid", "Tanh"),
        "SimpleRNN": ("Tanh",),
    }
    if settings["functions"] != default[kind]:
        attributes["activations"] = settings["functions"] * len(pieces)
        sharp = 1 / 6 if of.version >= 3 else 0.2
        count = attributes["activations"].count("HardSigmoid")
        attributes["activation_alpha"] = (sharp,) * count
        attributes["activation_beta"] = (0.5,) * count
    if kind == "GRU":
        attributes["linear_before_reset"] = reset
    build = of.build  # steps come first in ONNX, and in the runtimes of it
    results = build.nodes_of(
        _KINDS[kind][0],
        [build.transposed(x.name, (1, 0, 2)), *names],
        [f"{of.name}/sequence", f"{of.name}/last"],
        **attributes,
    )
    if config.get("return_sequences"):
        if backwards and not both:
            of.fail("sequences that go backwards are not supported")
        first = build.transposed(results[0], (2, 0, 1, 3))
        shape = build.integers(0, 0, -1)
        return Value(build.node("Reshape", first, shape, name=of.name), 3)
    first = build.transposed(results[1], (1, 0, 2))
    return Value(build.node("Flatten", first, axis=1, name=of.name), 2)


@layer(*_KINDS, keys=_KEYS, off=_OFF, mask="uses")
def recurrent(of: Layer) -> Value:
    """Run over time; give all states, or the last one."""
    return _run(of, of.settings, of.kind, of.arrays, False)


@layer("Bidirectional", keys="layer backward_layer merge_mode", mask="uses")
def bidirectional(of: Layer) -> Value:
    """Run over time in both directions."""
    inner = of.settings.get("layer")
    if not isinstance(inner, dict) or inner.get("class_name") not in _KINDS:
        of.fail(f"expected a layer of {', '.join(_KINDS)}")
    config = inner.get("config")
    if not isinstance(config, dict) or of.settings.get("merge_mode", "concat") != "concat":
        of.fail("merge_mode: expected concat")
    of.check(config, _KEYS.split(), _OFF.split())
    back = (of.settings.get("backward_layer") or {}).get("config") or config
    read = [k for k in _KEYS.split() if k != "go_backwards"]
    changed = [k for k in read if back.get(k) != config.get(k)]
    if changed:
        of.fail(f"backward_layer: expected the settings of the other one, found {changed}")
    if config.get("go_backwards"):
        of.fail("go_backwards of the first direction is not supported")
    return _run(of, config, str(inner["class_name"]), of.arrays, True)
