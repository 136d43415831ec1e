"""Copy Keras weights into models of daskdl layers, by order or by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from daskdl.errors import ModelFileError, SettingsError
from daskdl.interop.guard import existing
from daskdl.interop.keras.reader import weights_of
from daskdl.nn.core.module import Module
from daskdl.tensor import Array

_GRU = (1, 0, 2)


def load_weights(model: Module, path: str | Path, by: str = "order") -> None:
    """Copy the weights of a Keras file into a model with the same layers.

    Supported layers are Dense (here Linear), Conv1D to Conv3D, depthwise and transposed
    convolutions, BatchNormalization, LayerNormalization, Embedding, LSTM, GRU and SimpleRNN.
    Layouts are converted to ours.

    Parameters
    ----------
    model : Module
    path : path
        ``.keras``, ``.h5`` or ``.weights.h5``.
    by : "order" or "name"
        Match layers with weights by their order in model and file, or by equal names. A
        ``.weights.h5`` of Keras 3 has no order, unless it has at most one layer of each class.

    Raises
    ------
    ModelFileError
        When the file is damaged, or its weights do not match the layers. The model is unchanged
        then.
    """
    if by not in ("order", "name"):
        raise SettingsError(
            f"load_weights, by: expected order or name, found {by!r}; leave it out for their order"
        )
    path = existing(path, "file of Keras")
    weights = weights_of(path.read_bytes(), str(path))
    by_layer = {name: list(a.values()) for name, a in weights.layers.items() if a}
    owners = [
        (name, layer) for name, layer in model.modules()
        if type(layer).__name__ in _LAYERS and _arrays(layer)
    ]  # fmt: skip
    if by == "order":
        if weights.config is not None:
            by_layer = _ordered(weights.config, by_layer)
        pairs = list(zip(owners, by_layer.items(), strict=False))
    else:
        known = [(name, layer) for name, layer in owners if name in by_layer]
        pairs = [((name, layer), (name, by_layer[name])) for name, layer in known]
    if len(pairs) != len(owners) or (by == "order" and len(by_layer) != len(owners)):
        raise ModelFileError(
            f"{path}: expected the weights of {len(owners)} layers, {_few(n for n, _ in owners)}, "
            f"found those of {_few(by_layer)}"
            "; give the weights of this network"
        )
    converted_all: dict[str, Array] = {}
    for (name, layer), (theirs, arrays) in pairs:
        converted = _LAYERS[type(layer).__name__](layer, arrays)
        arrays_here = _arrays(layer)
        for key, array in arrays_here.items():
            value = converted.get(key)
            if value is not None and value.dtype.kind != "f":
                raise ModelFileError(
                    f"{path}: layer {theirs!r}: expected floats, found {value.dtype}; quantised "
                    "weights are not read, save the model before quantize()"
                )
            if value is None or value.size != array.size:
                shapes = [a.shape for a in arrays]
                raise ModelFileError(
                    f"{path}: layer {theirs!r}: expected weights for {name!r}, {key} of shape "
                    f"{array.shape}, found {shapes}"
                    "; build the network with those sizes"
                )
            converted_all[f"{name}.{key}" if name else key] = value.reshape(array.shape)
    model.load_state_dict(converted_all, strict=False)


def _few(names: Any) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:4])) + (", ..." if len(names) > 4 else "") or "none"


def _ordered(config: dict[str, Any], by_layer: dict[str, list[Array]]) -> dict[str, list[Array]]:
    inner = config.get("config")
    layers = inner if isinstance(inner, list) else (inner or {}).get("layers", [])
    names = [
        (layer.get("config") or {}).get("name", layer.get("name"))
        for layer in layers if isinstance(layer, dict) and isinstance(layer.get("config"), dict)
    ]  # fmt: skip
    if set(by_layer) - set(names):
        return by_layer
    return {name: by_layer[name] for name in names if name in by_layer}


def _arrays(layer: Any) -> dict[str, Array]:
    """Return a layer's own arrays, without its child layers' arrays."""
    return {name: tensor.data for name, tensor in layer.held() if "." not in name}


def _named(arrays: list[Array], *names: str) -> dict[str, Array]:
    return dict(zip(names, arrays, strict=False))


def _linear(layer: Any, arrays: list[Array]) -> dict[str, Array]:
    by_name = _named(arrays, "weight", "bias")
    return {name: a.T if name == "weight" else a for name, a in by_name.items()}


def _conv(layer: Any, arrays: list[Array]) -> dict[str, Array]:
    """Return filters (..., in, out) as (out, ..., in); depthwise ones as (C * times, ..., 1)."""
    by_name = _named(arrays, "weight", "bias")
    if "weight" in by_name and by_name["weight"].ndim > 2:
        kernel, shape = by_name["weight"], layer.weight.shape
        if shape[-1] == 1 and kernel.shape[-2] * kernel.shape[-1] == shape[0]:
            turned = np.moveaxis(kernel, (-2, -1), (0, 1))
            by_name["weight"] = turned.reshape(shape[0], *kernel.shape[:-2], 1)
        else:
            by_name["weight"] = np.moveaxis(kernel, -1, 0)
    return by_name


def _norm(layer: Any, arrays: list[Array]) -> dict[str, Array]:
    names = "weight", "bias", "running_mean", "running_variance"
    return _named(arrays, *names[-len(arrays) :] if len(arrays) == 2 and _arrays(layer).keys() == {
        "running_mean", "running_variance"} else names)  # fmt: skip


def _recurrent(layer: Any, arrays: list[Array]) -> dict[str, Array]:
    kind = type(layer).__name__
    if len(arrays) not in (2, 3):
        return {}
    order = _GRU if kind == "GRU" else None

    def rows(array: Array) -> Array:
        parts = np.split(array, 3, axis=-1) if order and array.shape[-1] % 3 == 0 else [array]
        return np.concatenate([parts[i] for i in order] if order and len(parts) == 3 else parts, -1)

    by_name = {"weight_input_0": rows(arrays[0]).T, "weight_state_0": rows(arrays[1]).T}
    if len(arrays) == 3:
        bias = rows(arrays[2])
        if kind == "GRU":
            by_name.update(zip(("bias_input_0", "bias_state_0"), np.atleast_2d(bias), strict=False))
        else:
            by_name["bias_0"] = bias
    return by_name


_LAYERS: dict[str, Any] = {
    "Linear": _linear,
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), _conv),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"), _conv),
    "BatchNorm": _norm,
    "LayerNorm": lambda layer, arrays: _named(arrays, "weight", "bias"),
    "Embedding": lambda layer, arrays: _named(arrays, "weight"),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
}
