"""Torch7's modules: containers, modules of tables of values, and layers."""

from __future__ import annotations

import functools

import numpy as np

from daskdl.interop.building import Value
from daskdl.interop.layer import bordered, clipped, dropout_of, operator_of, repeated, slopes, unit
from daskdl.interop.torch7.net import TABLE, Activity, Module, module

_TABLES = {"CAddTable": "Add", "CMulTable": "Mul", "CSubTable": "Sub", "CDivTable": "Div",
           "CMaxTable": "Max", "CMinTable": "Min"}  # fmt: skip

TABLE.update(
    {kind: operator_of(kind) for kind in ("Tanh", "Sigmoid", "Abs", "Sqrt", "Exp", "Log")}
    | {
        "SoftSign": operator_of("Softsign"),
        "ReLU": operator_of("Relu"),
        "LeakyReLU": operator_of("LeakyRelu", alpha=("negval", 0.01)),
        "ELU": operator_of("Elu", alpha=("alpha", 1)),
        "Dropout": dropout_of("p"),
        "SpatialDropout": dropout_of("p"),
    }
)


@module("Sequential")
def sequential(of: Module) -> Activity:
    """Run modules one after the other."""
    return functools.reduce(lambda value, child: child.run(value), of.children(), of.input)


@module("ConcatTable")
def concat_table(of: Module) -> Activity:
    """Pass the input to each module, and return a table of their results."""
    return [child.run(of.input) for child in of.children()]


@module("ParallelTable")
def parallel_table(of: Module) -> Activity:
    """Pass one value of a table to each module."""
    children, values = of.children(), of.several()
    if len(children) != len(values):
        of.fail(f"expected {len(children)} values, found {len(values)}")
    return [child.run(value) for child, value in zip(children, values, strict=True)]


@module("Concat", "DepthConcat")
def concat(of: Module) -> Activity:
    """Pass the input to each module, and join their results along an axis."""
    if of.kind == "DepthConcat":
        of.fail("results of different sizes are not supported")
    of.input = [child.run(of.input) for child in of.children()]
    return join_table(of)


@module("JoinTable")
def join_table(of: Module) -> Activity:
    """Join the values of a table along an axis."""
    if not of.input:
        of.fail("expected values to join, found none")
    values = [of.one(value) for value in of.several()]
    inner = "nInputDims" if of.kind == "JoinTable" else ""
    axis = of.lua_axis(of.integer("dimension", 2, -9), inner, values[0])
    return of.result("Concat", *(v.name for v in values), like=values[0], axis=axis)


@module(*_TABLES)
def elementwise_table(of: Module) -> Activity:
    """Combine the values of a table by addition, multiplication and the like."""
    values = [of.one(value) for value in of.several()]
    operator = _TABLES[of.kind]
    return functools.reduce(lambda a, b: of.result(operator, a.name, b.name, like=a), values)


@module("SelectTable")
def select_table(of: Module) -> Activity:
    """Take one value of a table."""
    values = of.several()
    index = of.integer("index", None, -len(values))
    if not 1 <= abs(index) <= len(values):
        of.fail(f"index: expected 1 to {len(values)}, found {index}")
    value: Activity = values[index - 1 if index > 0 else index]
    return value


@module("FlattenTable")
def flatten_table(of: Module) -> Activity:
    """Flatten nested tables to one table."""
    values: list[Value] = []
    waiting = [of.input]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Value):
            values.append(part)
        else:
            waiting += part[::-1]
    return values


@module("Identity", "Copy", "Contiguous", "TotalVariation", "ContentLoss", "StyleLoss",
        "GradientReversal", "L1Penalty")  # fmt: skip
def identity(of: Module) -> Activity:
    """Return the input."""
    return of.input


def _images(of: Module) -> Value:
    if of.rank != 4:
        of.fail(f"expected images (N, C, H, W), found {of.rank} axes")
    return of.x


def _pair(of: Module, name: str, default: int | None, least: int = 0) -> tuple[int, int]:
    """Return a setting of rows and columns, such as padH and padW."""
    across = of.integer(f"{name}W", default, least)
    pair = of.integer(f"{name}H", across if default is not None else None, least), across
    if max(pair) > 4096:
        of.fail(f"{name}: expected up to 4096, found {pair}")
    return pair


@module("SpatialConvolution", "SpatialConvolutionMM", "SpatialDilatedConvolution",
        "SpatialConvolutionLocal", "SpatialFullConvolution")  # fmt: skip
def conv(of: Module) -> Activity:
    """Convolve with filters (out, in / groups, rows, columns); some files have them flat.

    SpatialFullConvolution is a transposed convolution with filters (in, out, rows, columns).
    """
    x = _images(of)
    if of.kind == "SpatialConvolutionLocal":
        of.fail("filters of their own at each place are not supported")
    full = of.kind == "SpatialFullConvolution"
    out, into = of.integer("nOutputPlane", None, 1), of.integer("nInputPlane", None, 1)
    groups = 1 if full else of.integer("groups", 1, 1)
    lead = (into, out) if full else (out, into // groups)
    pad, more = _pair(of, "pad", 0), _pair(of, "adj", 0) if full else None
    weight = of.needed("weight", (*lead, *_pair(of, "k", None, 1)))
    return of.build.convolved(
        x, of.weight("weight", weight, of.build.filters), of.bias(out),
        operator="ConvTranspose" if full else "Conv", name=of.name, padding=(*pad, *pad),
        strides=_pair(of, "d", 1, 1), dilations=(1, 1) if full else _pair(of, "dilation", 1, 1),
        group=groups, output_padding=more,
    )  # fmt: skip


@module("Linear")
def linear(of: Module) -> Activity:
    """Multiply by a matrix (out, in)."""
    weight = of.needed("weight")
    if weight.ndim != 2 or of.rank != 2:
        of.fail(f"expected samples of numbers and a matrix, found {of.rank} axes, {weight.shape}")
    bias = [name for name in (of.bias(len(weight)),) if name]
    return of.result("Gemm", of.x.name, of.weight("weight", weight), *bias, transB=1)


@module("SpatialBatchNormalization", "BatchNormalization")
def batch_norm(of: Module) -> Activity:
    """Normalise by running statistics; old files have 1 / deviation in place of the variance."""
    mean = of.needed("running_mean")
    count, eps = mean.size, of.number("eps", 1e-5)
    if of.array("running_var") is not None:
        variance = of.needed("running_var", (count,))
    else:
        variance = of.needed("running_std", (count,)) ** -2.0 - eps
    scale = of.weight("weight", of.needed("weight", (count,))) if of.has("weight") else ""
    path = of.path or "norm"
    statistics = (
        of.build.buffer(f"{path}.running_mean", mean.reshape(count)),
        of.build.buffer(f"{path}.running_var", variance),
    )
    momentum = 1 - of.number("momentum", 0.1)
    return of.build.normalised(of.x, scale, of.bias(count), statistics, eps, of.name, momentum)


@module("InstanceNormalization")
def instance_norm(of: Module) -> Activity:
    """Normalise each channel of each image."""
    names = [of.weight(name, of.needed(name).reshape(-1)) for name in ("weight", "bias")]
    x, eps = _images(of), of.number("eps", 1e-5)
    return of.result("InstanceNormalization", x.name, *names, epsilon=eps)


@module("SpatialMaxPooling", "SpatialAveragePooling")
def pooling(of: Module) -> Activity:
    """Take the maximum or the mean of windows."""
    x, pad = _images(of), _pair(of, "pad", 0)
    mean, kernel = of.kind == "SpatialAveragePooling", _pair(of, "k", None, 1)
    if mean and not of.flag("divide", True):
        of.fail("sums instead of means are not supported")
    if any(p >= k for p, k in zip(pad, kernel, strict=True)):
        of.fail(f"expected a padding smaller than the kernel, found {pad} and {kernel}")
    return of.build.pooled(
        x, "AveragePool" if mean else "MaxPool", name=of.name, kernel=kernel,
        strides=_pair(of, "d", 1, 1), padding=(*pad, *pad), ceil_mode=int(of.flag("ceil_mode")),
        count_include_pad=int(of.flag("count_include_pad", True)) if mean else None,
    )  # fmt: skip


@module("SpatialCrossMapLRN", "SpatialCrossMapLRN_temp")
def local_response(of: Module) -> Activity:
    """Local response normalisation across channels."""
    return of.result(
        "LRN", _images(of).name, size=of.integer("size", 5, 1), alpha=of.number("alpha", 1e-4),
        beta=of.number("beta", 0.75), bias=of.number("k", 1),
    )  # fmt: skip


@module("ReLU6", "HardTanh", "Clamp")
def clamp(of: Module) -> Activity:
    """Limit numbers to a range."""
    if of.kind == "ReLU6":
        return clipped(of, 0, 6)
    return clipped(of, of.number("min_val", -1), of.number("max_val", 1))


@module("SoftPlus")
def softplus(of: Module) -> Activity:
    """log(1 + exp(beta x)) / beta."""
    beta = of.build.constant(of.number("beta", 1))
    return of.result("Div", of.add("Softplus", of.add("Mul", of.x.name, beta)), beta)


@module("Threshold")
def threshold(of: Module) -> Activity:
    """Keep numbers above a threshold, and replace the others by a number."""
    least, other = of.number("threshold", 1e-6), of.number("val", 0)
    if least == other == 0:
        return of.result("Relu", of.x.name)
    above = of.add("Greater", of.x.name, of.build.constant(least))
    return of.result("Where", above, of.x.name, of.build.constant(other))


@module("PReLU")
def prelu(of: Module) -> Activity:
    """Multiply negative numbers by a slope for each channel, or by one slope."""
    return slopes(of, of.needed("weight"), lambda array: of.weight("weight", array))


@module("SoftMax", "LogSoftMax", "SpatialSoftMax")
def softmax(of: Module) -> Activity:
    """Softmax along the channels."""
    return of.result("LogSoftmax" if of.kind == "LogSoftMax" else "Softmax", of.x.name, axis=1)


@module("MulConstant", "AddConstant", "Power", "Square")
def constant(of: Module) -> Activity:
    """Multiply by a number, add it, or raise to its power."""
    if of.kind == "Square":
        return of.result("Mul", of.x.name, of.x.name)
    name, operator = {"MulConstant": ("constant_scalar", "Mul"), "Power": ("pow", "Pow"),
                      "AddConstant": ("constant_scalar", "Add")}[of.kind]  # fmt: skip
    return of.result(operator, of.x.name, of.build.constant(of.number(name)))


@module("Normalize")
def normalize(of: Module) -> Activity:
    """Divide vectors by their Euclidean norm."""
    if of.number("p", 2) != 2:
        of.fail("p: expected the norm of 2")
    return of.result("Div", *unit(of, (1,), of.number("eps", 1e-10)))


@module("View", "Reshape")
def view(of: Module) -> Activity:
    """Reshape samples."""
    size = of.setting("size")
    if not isinstance(size, np.ndarray) or size.ndim != 1 or not 1 <= size.size <= 8:
        of.fail("size: expected lengths")
    lengths = [int(n) for n in size]
    if any(n < -1 or n == 0 for n in lengths) or lengths.count(-1) > 1:
        of.fail(f"size: expected lengths above 0, and -1 at most once, found {lengths}")
    inner = of.setting("numInputDims")
    whole = -1 in lengths and inner is None and len(lengths) > 1 and of.kind == "View"
    target = lengths if whole else [0, *lengths]
    return of.result("Reshape", of.x.name, of.build.integers(*target), rank=len(target))


@module("Squeeze")
def squeeze(of: Module) -> Activity:
    """Remove an axis of one element."""
    if of.setting("dim") is None:
        of.fail("expected an axis")
    axis = of.build.integers(of.lua_axis(of.integer("dim", None, 1), "numInputDims"))
    return of.result("Squeeze", of.x.name, axis, rank=of.rank - 1)


@module("Mean", "Max", "Sum")
def reduction(of: Module) -> Activity:
    """Take the mean, maximum or sum along an axis."""
    axis = of.build.integers(of.lua_axis(of.integer("dimension", 1, -9), "nInputDims"))
    kind = "Mean" if of.kind == "Sum" and of.flag("sizeAverage") else of.kind
    return of.result(f"Reduce{kind}", of.x.name, axis, rank=of.rank - 1, keepdims=0)


@module("SpatialZeroPadding", "SpatialReflectionPadding", "SpatialReplicationPadding")
def padding(of: Module) -> Activity:
    """Pad images by zeros, reflection or their border; negative widths crop."""
    sides = [of.integer(f"pad_{s}", 0, -4096) for s in "tlbr"]
    if max(sides) > 4096:
        of.fail(f"expected widths of up to 4096, found {sides}")
    mode = {"SpatialZeroPadding": "constant", "SpatialReflectionPadding": "reflect"}
    return bordered(of, _images(of), sides[:2], sides[2:], mode.get(of.kind, "edge"))


@module("SpatialUpSamplingNearest")
def upsampling(of: Module) -> Activity:
    """Repeat rows and columns."""
    times = of.integer("scale_factor", 2, 1)
    if times > 64:
        of.fail(f"scale_factor: expected up to 64, found {times}")
    return repeated(of, _images(of), (times, times))
