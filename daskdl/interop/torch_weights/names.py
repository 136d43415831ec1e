"""Convert weights between our names and layouts and PyTorch's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.errors import ShapeError
from daskdl.models.googlenet import GoogLeNet
from daskdl.models.inception import MODULES
from daskdl.models.resnet import DEPTHS, ResNet
from daskdl.models.ssd import SSD300
from daskdl.models.vgg import PLACES, VGG16
from daskdl.nn.core.module import Module
from daskdl.nn.core.sequential import Sequential
from daskdl.tensor import Array

#: Layers whose filters have channels last here and second in PyTorch.
_FILTERS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_RECURRENT = re.compile(r"^(weight|bias)_?(input|state)?_(\d+)(_reverse)?$")


def from_torch(
    model: Module, state: Mapping[str, ArrayLike], strict: bool = True
) -> dict[str, Array]:
    """Return PyTorch's weights under our names and in our layouts.

    Arrays that the model does not have keep their names; counters of batches are dropped. Raises
    ShapeError when one of the model's weights is missing, unless ``strict`` is False.
    """
    theirs = {name: np.asarray(value) for name, value in state.items()}
    if type(model) not in _RENAMES:  # a Sequential of PyTorch may be an attribute ``layers``
        theirs = {_indexed(model, name): value for name, value in theirs.items()}
    flat = _behind_flatten(model)
    ours, used = {}, set()
    for our_name, names, layer, _ in _places(model):
        missing = [name for name in names if name not in theirs]
        if missing and not strict:
            continue
        if missing:
            known = ", ".join(list(theirs)[:3])
            raise ShapeError(
                f"{type(model).__name__}: PyTorch's {missing[0]!r} for {our_name!r} is missing; "
                f"the file has {known}, ..."
            )
        used.update(names)
        value = sum((theirs[name] for name in names[1:]), theirs[names[0]])
        turned = our_name.endswith("weight") and type(layer).__name__ in _FILTERS
        ours[our_name] = np.moveaxis(value, 1, -1) if turned else value
        if our_name.endswith("weight") and id(layer) in flat and value.ndim == 2:
            # PyTorch flattens (channels, pixels), and we (pixels, channels).
            parts = value.reshape(len(value), flat[id(layer)], -1)
            ours[our_name] = parts.transpose(0, 2, 1).reshape(value.shape)
    rest = {n: v for n, v in theirs.items() if n not in used and not n.endswith("batches_tracked")}
    return {**ours, **rest}


def to_torch(model: Module) -> dict[str, Array]:
    """Return a model's weights under PyTorch's names and in its layouts."""
    theirs: dict[str, Array] = {}
    flat = _behind_flatten(model)
    for our_name, names, layer, array in _places(model):
        if our_name.endswith("weight") and id(layer) in flat:
            parts = array.reshape(len(array), -1, flat[id(layer)])
            array = parts.transpose(0, 2, 1).reshape(array.shape)
        turned = our_name.endswith("weight") and type(layer).__name__ in _FILTERS
        theirs[names[0]] = np.ascontiguousarray(np.moveaxis(array, -1, 1) if turned else array)
        theirs.update((name, np.zeros_like(array)) for name in names[1:])
    return theirs


def _behind_flatten(model: Module) -> dict[int, int]:
    """Return the channels of flattened images, by id of the Linear behind the Flatten.

    Only layers in a Sequential count: their order is known.
    """
    channels_of: dict[int, int] = {}
    inner = {id(one) for _, m in model.modules() if isinstance(m, Sequential) for one in m.layers}
    for _, module in model.modules():
        if not isinstance(module, Sequential) or id(module) in inner:
            continue
        channels, flat = 0, 0
        for layer in _in_order(module):
            kind = type(layer).__name__
            if kind in _FILTERS:
                channels, flat = layer.weight.shape[-1 if "Transpose" in kind else 0], 0
            elif kind == "Flatten":
                flat = channels
            elif kind == "Linear":
                if flat and layer.weight.shape[1] != flat:
                    channels_of[id(layer)] = flat
                channels = flat = 0
    return channels_of


def _in_order(module: Sequential) -> Iterator[Any]:
    """Yield the layers of a Sequential and of nested ones in order."""
    for layer in module.layers:
        yield from _in_order(layer) if isinstance(layer, Sequential) else [layer]


def _places(model: Module) -> Iterator[tuple[str, list[str], Any, Array]]:
    """Yield (our name, PyTorch's names, layer, array) for all weights and statistics.

    Recurrent layers of PyTorch may have two biases whose sum is our only one.
    """
    owners = dict(model.modules())
    rename = _RENAMES.get(type(model), _indexed)
    for our_name, tensor in model.held():
        path, _, attribute = our_name.rpartition(".")
        layer = owners[path]
        prefix = rename(model, path)
        prefix = f"{prefix}." if prefix else ""
        yield our_name, [prefix + name for name in _attribute(layer, attribute)], layer, tensor.data


def _indexed(model: Module, path: str) -> str:
    """Return the path without the ``layers`` of each Sequential, whose layers PyTorch numbers."""
    owners, walked, parts = dict(model.modules()), "", []
    for part in path.split("."):
        if part != "layers" or not isinstance(owners.get(walked), Sequential):
            parts.append(part)
        walked = f"{walked}.{part}" if walked else part
    return ".".join(parts)


def _attribute(layer: Any, name: str) -> list[str]:
    match = _RECURRENT.match(name)
    if match and type(layer).__name__ in ("GRU", "LSTM", "RNN"):
        kind, side, number, back = match.groups()
        sides = {"input": ["ih"], "state": ["hh"], None: ["ih", "hh"]}[side]
        return [f"{kind}_{one}_l{number}{back or ''}" for one in sides]
    return ["running_var" if name == "running_variance" else name]


def _resnet(model: Any, path: str) -> str:
    """Return torchvision's name of a layer of a ResNet."""
    head, _, rest = path.partition(".")
    if head != "blocks":
        return {"conv": "conv1", "norm": "bn1", "linear": "fc"}.get(path, path)
    number, _, part = rest.partition(".")
    stage, block = 0, int(number)
    deep = hasattr(model.blocks[0], "conv3")
    counts = next(
        c for c, bottleneck in DEPTHS.values() if (bottleneck, sum(c)) == (deep, len(model.blocks))
    )
    while block >= counts[stage]:
        block -= counts[stage]
        stage += 1
    parts = {"norm1": "bn1", "norm2": "bn2", "last": "bn3" if deep else "bn2",
             "shortcut.conv": "downsample.0", "shortcut.norm": "downsample.1"}  # fmt: skip
    return f"layer{stage + 1}.{block}.{parts.get(part, part)}"


def _vgg(model: Any, path: str) -> str:
    """Return torchvision's name of a layer of VGG-16."""
    part, _, number = path.removeprefix("trunk.").partition(".")
    if part == "convolutions":
        return f"features.{PLACES[int(number)]}"
    return {"linear1": "classifier.0", "linear2": "classifier.3", "linear": "classifier.6"}[part]


#: torchvision's names of the branches of GoogLeNet's modules.
_BRANCHES = {
    "one": "branch1", "three_before": "branch2.0", "three": "branch2.1", "five_before": "branch3.0",
    "five": "branch3.1", "pooled": "branch4.1", "convolution": "conv", "linear1": "fc1",
    "linear2": "fc2",
}  # fmt: skip


def _googlenet(model: Any, path: str) -> str:
    """Return torchvision's name of a layer of GoogLeNet."""
    parts = [{"norm": "bn"}.get(part, part) for part in path.split(".")]
    if parts[0] == "stack":
        parts = [f"inception{[*MODULES][int(parts[1])]}", _BRANCHES[parts[2]], *parts[3:]]
    elif parts[0] == "heads":
        parts = [f"aux{int(parts[1]) + 1}", _BRANCHES[parts[2]], *parts[3:]]
    return "fc" if path == "linear" else ".".join(parts)


def _ssd300(model: Any, path: str) -> str:
    """Return torchvision's name of a layer of SSD300; layers after conv4_3 count from there."""
    part, *rest = path.removeprefix("trunk.").split(".")
    if part == "trunk":
        return "backbone"
    if part in ("classification", "regression"):
        return f"head.{part}_head.module_list.{rest[-1]}"
    if part in ("fc6", "fc7"):
        return f"backbone.extra.0.7.{1 if part == 'fc6' else 3}"
    place = PLACES[int(rest[0])] if part == "convolutions" else int(rest[0])
    if part == "extra":
        return f"backbone.extra.{1 + place // 2}.{2 * (place % 2)}"
    conv4_3 = PLACES[9]
    # Its ReLU belongs to the first part; the second part begins with the pooling after it.
    behind = place > conv4_3
    return f"backbone.extra.0.{place - conv4_3 - 2}" if behind else f"backbone.features.{place}"


_RENAMES: dict[type, Callable[[Any, str], str]] = {
    ResNet: _resnet, VGG16: _vgg, SSD300: _ssd300, GoogLeNet: _googlenet,
}  # fmt: skip
