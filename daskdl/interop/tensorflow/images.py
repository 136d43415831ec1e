"""TensorFlow's operators on images: convolutions, pooling, normalisation, resizing."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from daskdl.interop.building import Value, depthwise, filters_second
from daskdl.interop.tensorflow.graphdef import NodeDef
from daskdl.interop.tensorflow.net import Call, operator
from daskdl.tensor import Array

#: Patterns of nodes: an operator and its inputs. A word matches any node, the same one at each
#: occurrence; a word in capitals matches a constant.
_SHIFTS = (("Sub", "BETA", ("Mul", "MEAN", "s")), ("Mul", ("Neg", "MEAN"), "s"))
_ROOT = ("Rsqrt", ("Add", "VARIANCE", "EPS"))
_SCALES = (("Mul", _ROOT, "GAMMA"), _ROOT)
_ALIASES = ("Identity", "Const")
#: The operator that replaces these nodes, and its inputs; gamma and beta may be missing.
NORMALISATION = "batch normalisation"
_INPUTS = ("x", "MEAN", "VARIANCE", "EPS", "GAMMA", "BETA")


def recognised(node: NodeDef, nodes: Mapping[str, NodeDef]) -> NodeDef | None:
    """Return one node for a normalisation that ends with this addition, or None.

    ``tf.nn.batch_normalization`` writes seven nodes for ``x * s + (beta - mean * s)``, with
    ``s = gamma / sqrt(variance + eps)``; gamma and beta may be missing.
    """
    for shift, scale in itertools.product(_SHIFTS, _SCALES):
        for words in _matches(("Add", ("Mul", "x", "s"), shift), node.name, nodes, {}):
            for names in _matches(scale, words["s"], nodes, words):
                inputs = [names.get(word, "") for word in _INPUTS]
                return dataclasses.replace(node, operator=NORMALISATION, inputs=inputs)
    return None


def _matches(
    pattern: Any, name: str, nodes: Mapping[str, NodeDef], words: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Yield node names by the words of a pattern, for each way in which it matches a node."""
    if isinstance(pattern, str):
        if words.get(pattern, name) == name and (pattern.islower() or _constant(name, nodes)):
            yield {**words, pattern: name}
        return
    operator, *parts = pattern
    node = nodes.get(name)
    if node is None or node.operator not in (operator, f"{operator}V2"):
        return
    orders = itertools.permutations(parts) if operator in ("Add", "Mul") else [parts]
    for order in orders if len(node.inputs) == len(parts) else ():
        matches = [words]
        for part, read in zip(order, node.inputs, strict=True):
            matches = [more for known in matches for more in _matches(part, read, nodes, known)]
        yield from matches


def _constant(name: str, nodes: Mapping[str, NodeDef]) -> bool:
    """Whether a name is a constant, or the Identity of one."""
    for _ in range(8):
        node = nodes.get(name)
        if node is None or node.operator not in _ALIASES:
            return False
        if node.operator == "Const":
            return True
        if not node.inputs:
            return False
        name = node.inputs[0]
    return False


#: By operator: ONNX's name, the conversion of filters, and the number of the input to convolve.
_CONVOLUTIONS = {
    "Conv2D": ("Conv", filters_second, 0),
    "DepthwiseConv2dNative": ("Conv", depthwise, 0),
    "Conv2DBackpropInput": ("ConvTranspose", filters_second, 2),
}


@operator(*_CONVOLUTIONS)
def conv(call: Call) -> Value:
    """Convolve with filters (H, W, in, out); depthwise ones are (H, W, C, multiplier).

    Conv2DBackpropInput is a transposed convolution with filters (H, W, out, in).
    """
    name, turn, place = _CONVOLUTIONS[call.kind]
    filters = call.array(1, "filters")
    if filters.ndim != 4:
        call.fail(f"expected filters of four axes, found {filters.shape}")
    return call.done(
        call.build.convolved(
            call.image(place), call.weights(1, "filters", turn), operator=name,
            name=call.name, padding=call.padding(), strides=call.pair("strides"),
            dilations=call.pair("dilations"), group=filters.shape[2] if turn is depthwise else 1,
        )
    )  # fmt: skip


@operator("BiasAdd")
def bias_add(call: Call) -> Value:
    """Add a number to each channel; it becomes the bias of a convolution before it."""
    x = call.image(0) if call.first_of("images") else call.x
    bias = call.array(1, "a bias")
    if x.second:
        joined = into_convolution(call, x, bias)
        if joined is not None:
            return call.done(joined)
    name = call.net.added(bias, call.names[1])
    return call.done(call.build.broadcast(x, Value(name, 1), "Add", call.name))


def into_convolution(call: Call, x: Value, bias: Array) -> Value | None:
    """Return the result of a convolution with this bias; None if other nodes read it."""
    build = call.build
    if not build.nodes or bias.ndim != 1 or call.net.uses.get(call.names[0], 0) > 1:
        return None
    conv = build.nodes[-1]
    if conv.outputs != (x.name,) or conv.operator not in ("Conv", "ConvTranspose"):
        return None
    if len(conv.inputs) > 2:
        return None
    build.nodes[-1] = conv._replace(inputs=(*conv.inputs, call.net.added(bias, call.names[1])))
    return x


@operator("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(call: Call) -> list[Value]:
    """Normalise by running statistics."""
    if call.flag("is_training", True):
        call.fail("it normalises by the batch's statistics; freeze the graph for inference")
    x = call.image(0)
    scale, bias = (call.weights(i, "weights") for i in (1, 2))
    eps = call.number("epsilon", 1e-4)
    statistics = _statistics(call, 3)
    return [call.done(call.build.normalised(x, scale, bias, statistics, eps, call.name))]


def _statistics(call: Call, first: int) -> tuple[str, str]:
    """Add the mean, input ``first``, and the variance, the next input; return their names."""
    mean, variance = (
        call.build.buffer(call.names[i], call.array(i, "statistics")) for i in (first, first + 1)
    )
    return mean, variance


@operator(NORMALISATION)
def arithmetic_batch_norm(call: Call) -> Value:
    """Normalise by running statistics, in place of seven nodes."""
    mean, variance, eps = (call.array(i, "statistics") for i in (1, 2, 3))
    if mean.ndim != 1 or variance.shape != mean.shape or eps.size != 1:
        call.fail(f"expected statistics of channels, found {mean.shape}, {variance.shape}")
    scale, bias = (call.weights(i, "weights") if call.names[i] else "" for i in (4, 5))
    return call.build.normalised(
        call.x, scale, bias, _statistics(call, 1), float(eps.reshape(-1)[0]), call.name
    )


@operator("BatchNormWithGlobalNormalization")
def old_batch_norm(call: Call) -> Value:
    """Normalise by running statistics, as in the first versions of TensorFlow."""
    statistics, bias = _statistics(call, 1), call.weights(3, "a bias")
    scales = call.flag("scale_after_normalization", True)
    scale = call.weights(4, "a scale") if scales else ""
    eps = call.number("variance_epsilon", 1e-3)
    return call.build.normalised(call.x, scale, bias, statistics, eps, call.name)


@operator("MaxPool", "AvgPool")
def pool(call: Call) -> Value:
    """Take the maximum or the mean of windows."""
    name = "MaxPool" if call.kind == "MaxPool" else "AveragePool"
    return call.done(
        call.build.pooled(
            call.image(0), name, name=call.name, kernel=call.pair("ksize"),
            strides=call.pair("strides"), padding=call.padding(),
        )
    )  # fmt: skip


@operator("LRN")
def local_response(call: Call) -> Value:
    """Local response normalisation across channels."""
    size = 2 * call.integer("depth_radius", 5, 0, 2047) + 1
    x = call.build.second(call.x)
    return call.build.made(
        x, "LRN", x.name, name=call.name, size=size,
        alpha=call.number("alpha", 1) * size, beta=call.number("beta", 0.5),
        bias=call.number("bias", 1),
    )  # fmt: skip


@operator("ResizeBilinear", "ResizeNearestNeighbor")
def resize(call: Call) -> Value:
    """Resize images."""
    size = call.integers(1, "a size")
    if len(size) != 2 or not all(1 <= n <= 1 << 14 for n in size):
        call.fail(f"expected rows and columns from 1 to 16384, found {size}")
    x, build = call.build.second(call.x), call.build
    target = build.node("Concat", build.node("Shape", x.name, start=0, end=2),
                        build.integers(*size), axis=0)  # fmt: skip
    how = "asymmetric"
    if call.flag("align_corners"):
        how = "align_corners"
    elif call.flag("half_pixel_centers"):
        how = "half_pixel"
    linear = call.kind == "ResizeBilinear"
    rounding = "round_prefer_ceil" if how == "align_corners" else "floor"
    return build.made(
        x, "Resize", x.name, "", "", target, name=call.name,
        mode="linear" if linear else "nearest", coordinate_transformation_mode=how,
        nearest_mode=None if linear else rounding,
    )  # fmt: skip
