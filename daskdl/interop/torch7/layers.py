"""Torch7's layers: convolutions, products, normalisations, pooling, functions, shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.interop.building import Value, by_channel, length, rate_of_dropout
from daskdl.interop.torch7.containers import _axis
from daskdl.interop.torch7.net import Given, Module, module

_FUNCTIONS = {
    "Tanh": "Tanh", "Sigmoid": "Sigmoid", "Abs": "Abs", "Sqrt": "Sqrt", "Exp": "Exp", "Log": "Log",
    "SoftSign": "Softsign", "ReLU": "Relu",
}  # fmt: skip


def _images(of: Module, value: Given) -> Value:
    found = of.one(value)
    if found.rank != 4:
        of.fail(f"expected images (N, C, H, W), found {found.rank} axes")
    return found


def _pair(of: Module, name: str, default: int | None, least: int = 0) -> tuple[int, int]:
    """Return a setting of rows and columns, such as padH and padW."""
    across = of.integer(f"{name}W", default, least)
    found = of.integer(f"{name}H", across if default is not None else None, least), across
    if max(found) > 4096:
        of.fail(f"{name}: expected up to 4096, found {found}")
    return found


@module("SpatialConvolution", "SpatialConvolutionMM", "SpatialDilatedConvolution",
        "SpatialConvolutionLocal")  # fmt: skip
def conv(of: Module, value: Given) -> Given:
    """Convolve with filters (out, in / groups, rows, columns), which some files have flat."""
    x = _images(of, value)
    if of.kind == "SpatialConvolutionLocal":
        of.fail("filters of their own at each place are not supported")
    out, into = of.integer("nOutputPlane", None, 1), of.integer("nInputPlane", None, 1)
    groups = of.integer("groups", 1, 1)
    kernel = _pair(of, "k", None, 1)
    weight = of.needed("weight", (out, into // groups, *kernel))
    pad = _pair(of, "pad", 0)
    given = [x.name, of.weight("weight", weight, of.build.filters)]
    if of.array("bias") is not None:
        given.append(of.weight("bias", of.needed("bias", (out,))))
    return of.made(
        x, "Conv", *given, strides=_pair(of, "d", 1, 1), pads=(*pad, *pad), group=groups,
        dilations=_pair(of, "dilation", 1, 1),
    )  # fmt: skip


@module("SpatialFullConvolution")
def transposed_conv(of: Module, value: Given) -> Given:
    """Let each pixel add its filter, (in, out, rows, columns), to the result."""
    x = _images(of, value)
    out, into = of.integer("nOutputPlane", None, 1), of.integer("nInputPlane", None, 1)
    pad, more = _pair(of, "pad", 0), _pair(of, "adj", 0)
    weight = of.needed("weight", (into, out, *_pair(of, "k", None, 1)))
    given = [x.name, of.weight("weight", weight, of.build.filters)]
    if of.array("bias") is not None:
        given.append(of.weight("bias", of.needed("bias", (out,))))
    return of.made(
        x, "ConvTranspose", *given, strides=_pair(of, "d", 1, 1), pads=(*pad, *pad),
        output_padding=more,
    )  # fmt: skip


@module("Linear")
def linear(of: Module, value: Given) -> Given:
    """Multiply with a matrix (out, in)."""
    x = of.one(value)
    weight = of.needed("weight")
    if weight.ndim != 2 or x.rank != 2:
        of.fail(f"expected samples of numbers and a matrix, found {x.rank} axes, {weight.shape}")
    given = [x.name, of.weight("weight", weight)]
    if of.array("bias") is not None:
        given.append(of.weight("bias", of.needed("bias", (len(weight),))))
    return Value(of.add("Gemm", *given, transB=1), 2)


@module("SpatialBatchNormalization", "BatchNormalization")
def batch_norm(of: Module, value: Given) -> Given:
    """Normalise by running statistics; old files have one over the deviation."""
    x, mean = of.one(value), of.needed("running_mean")
    count, eps = mean.size, of.number("eps", 1e-5)
    mean = mean.reshape(count)
    if of.array("running_var") is not None:
        variance = of.needed("running_var", (count,))
    else:
        variance = of.needed("running_std", (count,)) ** -2.0 - eps
    scale, bias = (
        of.weight(name, of.needed(name, (count,)))
        if of.array(name) is not None
        else of.build.constant(np.full(count, default))
        for name, default in (("weight", 1.0), ("bias", 0.0))
    )
    path = of.path or "norm"
    return of.made(
        x, "BatchNormalization", x.name, scale, bias,
        of.build.buffer(f"{path}.running_mean", mean),
        of.build.buffer(f"{path}.running_var", variance),
        epsilon=eps, momentum=1 - of.number("momentum", 0.1),
    )  # fmt: skip


@module("InstanceNormalization")
def instance_norm(of: Module, value: Given) -> Given:
    """Normalise each image's channels by themselves."""
    x = _images(of, value)
    given = [x.name, of.weight("weight", of.needed("weight").reshape(-1))]
    given.append(of.weight("bias", of.needed("bias").reshape(-1)))
    return of.made(x, "InstanceNormalization", *given, epsilon=of.number("eps", 1e-5))


@module("SpatialMaxPooling", "SpatialAveragePooling")
def pooling(of: Module, value: Given) -> Given:
    """Take the largest number or the mean of windows."""
    x, pad = _images(of, value), _pair(of, "pad", 0)
    settings: dict[str, Any] = {}
    if of.kind == "SpatialAveragePooling":
        if not of.flag("divide", True):
            of.fail("sums instead of means are not supported")
        settings["count_include_pad"] = int(of.flag("count_include_pad", True))
    operator = "MaxPool" if of.kind == "SpatialMaxPooling" else "AveragePool"
    kernel = _pair(of, "k", None, 1)
    if any(p >= k for p, k in zip(pad, kernel, strict=True)):
        of.fail(f"expected a padding smaller than the kernel, found {pad} and {kernel}")
    return of.made(
        x, operator, x.name, kernel_shape=kernel, strides=_pair(of, "d", 1, 1),
        pads=(*pad, *pad), ceil_mode=int(of.flag("ceil_mode")), **settings,
    )  # fmt: skip


@module("SpatialCrossMapLRN", "SpatialCrossMapLRN_temp")
def local_response(of: Module, value: Given) -> Given:
    """Divide by a power of the squares of the channels around."""
    x = _images(of, value)
    return of.made(
        x, "LRN", x.name, size=of.integer("size", 5, 1), alpha=of.number("alpha", 1e-4),
        beta=of.number("beta", 0.75), bias=of.number("k", 1),
    )  # fmt: skip


@module(*_FUNCTIONS)
def function(of: Module, value: Given) -> Given:
    """Compute a function of each number."""
    x = of.one(value)
    return of.made(x, _FUNCTIONS[of.kind], x.name)


@module("ReLU6", "HardTanh", "Clamp")
def clamp(of: Module, value: Given) -> Given:
    """Numbers from a least to a largest one."""
    x = of.one(value)
    low, high = (0.0, 6.0) if of.kind == "ReLU6" else (-1.0, 1.0)
    limits = (of.number("min_val", low), of.number("max_val", high)) if of.kind != "ReLU6" else (
        low, high,
    )  # fmt: skip
    return of.made(x, "Clip", x.name, *map(of.build.constant, limits))


@module("LeakyReLU", "ELU", "SoftPlus", "Threshold")
def rectified(of: Module, value: Given) -> Given:
    """Keep what is positive; with a slope, an exponential or a smooth corner."""
    x = of.one(value)
    if of.kind == "LeakyReLU":
        return of.made(x, "LeakyRelu", x.name, alpha=of.number("negval", 0.01))
    if of.kind == "ELU":
        return of.made(x, "Elu", x.name, alpha=of.number("alpha", 1))
    if of.kind == "SoftPlus":
        beta = of.build.constant(of.number("beta", 1))
        return of.made(x, "Div", of.add("Softplus", of.add("Mul", x.name, beta)), beta)
    least, other = of.number("threshold", 1e-6), of.number("val", 0)
    if least == other == 0:
        return of.made(x, "Relu", x.name)
    above = of.add("Greater", x.name, of.build.constant(least))
    return of.made(x, "Where", above, x.name, of.build.constant(other))


@module("PReLU")
def prelu(of: Module, value: Given) -> Given:
    """Multiply what is negative with a slope of each channel, or one of all."""
    x = of.one(value)
    slope = of.weight("weight", by_channel(of.needed("weight"), x.rank))
    return of.made(x, "PRelu", x.name, slope)


@module("SoftMax", "LogSoftMax", "SpatialSoftMax")
def softmax(of: Module, value: Given) -> Given:
    """Softmax along the channels."""
    x = of.one(value)
    return of.made(x, "LogSoftmax" if of.kind == "LogSoftMax" else "Softmax", x.name, axis=1)


@module("Dropout", "SpatialDropout")
def dropout(of: Module, value: Given) -> Given:
    """Set a share of all numbers to 0 in training."""
    x = of.one(value)
    return of.made(x, "Dropout", x.name, rate_of_dropout(of, "p", of.number("p", 0.5)))


@module("MulConstant", "AddConstant", "Power", "Square")
def constant(of: Module, value: Given) -> Given:
    """Multiply with, add or raise to a number."""
    x = of.one(value)
    if of.kind == "Square":
        return of.made(x, "Mul", x.name, x.name)
    name, operator = {"MulConstant": ("constant_scalar", "Mul"), "Power": ("pow", "Pow"),
                      "AddConstant": ("constant_scalar", "Add")}[of.kind]  # fmt: skip
    return of.made(x, operator, x.name, of.build.constant(of.number(name)))


@module("Normalize")
def normalize(of: Module, value: Given) -> Given:
    """Divide vectors by their Euclidean length."""
    x = of.one(value)
    if of.number("p", 2) != 2:
        of.fail("p: expected the norm of 2")
    return of.made(x, "Div", x.name, length(of, x.name, (1,), of.number("eps", 1e-10)))


@module("View", "Reshape")
def view(of: Module, value: Given) -> Given:
    """Give samples another shape."""
    x, size = of.one(value), of.held.fields.get("size")
    if not isinstance(size, np.ndarray) or size.ndim != 1 or not 1 <= size.size <= 8:
        of.fail("size: expected lengths")
    lengths = [int(n) for n in size]
    if any(n < -1 or n == 0 for n in lengths) or lengths.count(-1) > 1:
        of.fail(f"size: expected lengths above 0, and -1 at most once, found {lengths}")
    inner = of.held.fields.get("numInputDims")
    whole = -1 in lengths and inner is None and len(lengths) > 1 and of.kind == "View"
    target = lengths if whole else [0, *lengths]
    return Value(of.add("Reshape", x.name, of.build.integers(*target)), len(target))


@module("Squeeze")
def squeeze(of: Module, value: Given) -> Given:
    """Leave out an axis of one element."""
    x = of.one(value)
    if of.held.fields.get("dim") is None:
        of.fail("expected an axis")
    inner = of.held.fields.get("numInputDims")
    axis = _axis(of, of.integer("dim", None, 1), x, inner if isinstance(inner, int) else 0)
    return Value(of.add("Squeeze", x.name, of.build.integers(axis)), x.rank - 1)


@module("Mean", "Max", "Sum")
def reduction(of: Module, value: Given) -> Given:
    """Take the mean, largest or sum along an axis."""
    x = of.one(value)
    inner = of.held.fields.get("nInputDims")
    axis = _axis(of, of.integer("dimension", 1, -9), x, inner if isinstance(inner, int) else 0)
    operator = {"Mean": "ReduceMean", "Max": "ReduceMax", "Sum": "ReduceSum"}[of.kind]
    if of.kind == "Sum" and of.flag("sizeAverage"):
        operator = "ReduceMean"
    axes = of.build.integers(axis)
    return Value(of.add(operator, x.name, axes, keepdims=0), x.rank - 1)


@module("SpatialZeroPadding", "SpatialReflectionPadding", "SpatialReplicationPadding")
def padding(of: Module, value: Given) -> Given:
    """Put zeros, the image turned round, or its border around; negative widths cut off."""
    x = _images(of, value)
    sides = [of.integer(f"pad_{s}", 0, -4096) for s in "tlbr"]
    if max(sides) > 4096:
        of.fail(f"expected widths of up to 4096, found {sides}")
    pads = of.build.integers(0, 0, *sides[:2], 0, 0, *sides[2:])
    mode = {"SpatialZeroPadding": "constant", "SpatialReflectionPadding": "reflect"}
    return of.made(x, "Pad", x.name, pads, mode=mode.get(of.kind, "edge"))


@module("SpatialUpSamplingNearest")
def upsampling(of: Module, value: Given) -> Given:
    """Repeat rows and columns."""
    x, times = _images(of, value), of.integer("scale_factor", 2, 1)
    if times > 64:
        of.fail(f"scale_factor: expected up to 64, found {times}")
    return of.made(
        x, "Resize", x.name, "", of.build.constant([1, 1, times, times]), mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
