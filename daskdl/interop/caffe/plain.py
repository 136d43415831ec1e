"""Layers without weights: activations, arithmetic, pooling, local response, reductions."""

from __future__ import annotations

import numpy as np

from daskdl.interop.building import Value
from daskdl.interop.caffe.layers import TABLE, Layer, layer, spatial
from daskdl.interop.layer import clipped, dropout_of, operator_of

TABLE.update({
    "Sigmoid": operator_of("Sigmoid"), "TanH": operator_of("Tanh"), "AbsVal": operator_of("Abs"),
    "BNLL": operator_of("Softplus"), "ELU": operator_of("Elu", alpha=("alpha", 1)),
    "Swish": operator_of("Swish", alpha=("beta", 1)), "Dropout": dropout_of("dropout_ratio"),
})  # fmt: skip


@layer("ReLU")
def relu(of: Layer) -> Value:
    """max(x, 0), or leaky ReLU with ``negative_slope``."""
    slope = of.settings.number("negative_slope")
    if slope:
        return of.result("LeakyRelu", of.x.name, alpha=slope)
    return of.result("Relu", of.x.name)


@layer("ReLU6", "Clip")
def clip(of: Layer) -> Value:
    """Limit numbers to a range; for ReLU6 from 0 to 6."""
    return clipped(of, of.number("min", 0), of.number("max", 6))


def _affine(of: Layer) -> str:
    """Add shift + scale x; return its name."""
    name, scale, shift = of.x.name, of.number("scale", 1), of.number("shift", 0)
    name = of.add("Mul", name, of.build.constant(scale)) if scale != 1 else name
    return of.add("Add", name, of.build.constant(shift)) if shift else name


@layer("Power")
def power(of: Layer) -> Value:
    """(shift + scale x) ** power."""
    inside, exponent = _affine(of), of.number("power", 1)
    if exponent == 1:
        return of.result("Identity", inside)
    return of.result("Pow", inside, of.build.constant(exponent))


@layer("Exp", "Log")
def exponential(of: Layer) -> Value:
    """Raise a base, by default e, to shift + scale x; or take the logarithm of that."""
    inside, base = _affine(of), of.number("base", -1)
    if of.kind == "Exp":
        power = of.add("Mul", inside, of.build.constant(np.log(base))) if base > 0 else inside
        return of.result("Exp", power)
    if base <= 0 or base == 1:
        return of.result("Log", inside)
    return of.result("Mul", of.add("Log", inside), of.build.constant(1 / np.log(base)))


@layer("Threshold")
def threshold(of: Layer) -> Value:
    """Return 1 above a threshold, 0 elsewhere."""
    least = of.settings.number("threshold")
    above = of.add("Greater", of.x.name, of.build.constant(least))
    return of.result("Cast", above, to=1)


@layer("Eltwise")
def eltwise(of: Layer) -> Value:
    """Add several bottoms, optionally with coefficients, multiply them, or take their maximum."""
    operation = of.settings.word("operation", "SUM")
    operators = {"SUM": "Add", "PROD": "Mul", "MAX": "Max"}
    if operation not in operators or len(of.inputs) < 2:
        of.fail(f"expected SUM, PROD or MAX of two bottoms or more, found {operation}")
    names = [bottom.name for bottom in of.inputs]
    factors = of.settings.numbers("coeff")
    if factors and len(factors) != len(names):
        of.fail(f"expected {len(names)} coefficients, found {len(factors)}")
    if operation == "SUM":
        names = [
            name if factor == 1 else of.add("Mul", name, of.build.constant(factor))
            for name, factor in zip(names, factors or [1.0] * len(names), strict=True)
        ]
    total = names[0]
    for name in names[1:-1]:
        total = of.add(operators[operation], total, name)
    return of.result(operators[operation], total, names[-1])


#: Settings of windows; pooling of whole images ignores them.
_WINDOW = {
    *(f"{name}{end}" for name in ("kernel", "stride", "pad") for end in ("", "_size", "_h", "_w")),
    "ceil_mode", "round_mode",
}  # fmt: skip


@layer("Pooling")
def pooling(of: Layer) -> Value:
    """Take the maximum or the mean of windows, which may reach beyond the image's end."""
    method = of.settings.word("pool", "MAX")
    if method not in ("MAX", "AVE") or len(of.names) > 1 or of.rank != 4:
        of.fail(f"expected one result of MAX or AVE of (N, C, H, W), found {method}")
    x = of.x.name
    if of.settings.flag("global_pooling", False):
        of.settings.asked |= of.settings.fields.keys() & _WINDOW
        return of.result("GlobalMaxPool" if method == "MAX" else "GlobalAveragePool", x)
    kernel = spatial(of, "kernel_size", 0, 2)
    pad = spatial(of, "pad", 0, 2)
    if min(kernel) < 1 or any(p >= k for p, k in zip(pad, kernel, strict=True)):
        of.fail(f"expected a kernel of at least 1 that is larger than its padding, found {kernel}")
    ceil = of.settings.flag("ceil_mode", of.settings.word("round_mode", "CEIL") == "CEIL")
    return of.build.pooled(
        of.x, "MaxPool" if method == "MAX" else "AveragePool", name=of.output, kernel=kernel,
        strides=spatial(of, "stride", 1, 2), padding=(*pad, *pad), ceil_mode=int(ceil),
        count_include_pad=1 if method == "AVE" else None,
    )  # fmt: skip


@layer("LRN")
def local_response(of: Layer) -> Value:
    """Local response normalisation across channels, or across pixels."""
    size = of.settings.integer("local_size", 5, 1, 4096)
    alpha, beta = of.settings.number("alpha", 1), of.settings.number("beta", 0.75)
    x, k = of.x.name, of.settings.number("k", 1)
    if size % 2 == 0:
        of.fail(f"local_size: expected an odd number, found {size}")
    region = of.settings.word("norm_region", "ACROSS_CHANNELS")
    if region == "ACROSS_CHANNELS":
        return of.result("LRN", x, size=size, alpha=alpha, beta=beta, bias=k)
    mean = of.add(
        "AveragePool", of.add("Mul", x, x), kernel_shape=(size, size),
        pads=(size // 2,) * 4, count_include_pad=1,
    )  # fmt: skip
    inside = of.add("Add", of.add("Mul", mean, of.build.constant(alpha)), of.build.constant(1))
    return of.result("Mul", x, of.add("Pow", inside, of.build.constant(-beta)))


@layer("MVN")
def mean_variance(of: Layer) -> Value:
    """Shift to mean 0 and scale to deviation 1, for each channel or each image."""
    first = 1 if of.settings.flag("across_channels", False) else 2
    small = of.settings.number("eps", 1e-9)
    axes = of.build.integers(*range(first, of.rank))
    x = of.x.name
    mean = of.add("ReduceMean", x, axes)
    if not of.settings.flag("normalize_variance", True):
        return of.result("Sub", x, mean)
    centred = of.add("Sub", x, mean)
    deviation = of.add("Sqrt", of.add("ReduceMean", of.add("Mul", centred, centred), axes))
    eps = of.build.constant(small)
    return of.result("Div", centred, of.add("Add", deviation, eps))


@layer("Softmax")
def softmax(of: Layer) -> Value:
    """Softmax along an axis, by default the channels."""
    axis = of.axis(of.settings.integer("axis", 1, -9, 9))
    return of.result("Softmax", of.x.name, axis=axis)


@layer("Reduction")
def reduction(of: Layer) -> Value:
    """Sum, sum of magnitudes or of squares, or mean over the axes from ``axis`` on."""
    operation = of.settings.word("operation", "SUM")
    operators = {
        "SUM": "ReduceSum", "ASUM": "ReduceL1", "SUMSQ": "ReduceSumSquare", "MEAN": "ReduceMean",
    }  # fmt: skip
    if operation not in operators:
        of.fail(f"expected one of {', '.join(operators)}, found {operation}")
    axis = of.axis(of.settings.integer("axis", 0, -9, 9))
    axes = of.build.integers(*range(axis, of.rank))
    x, factor = of.x.name, of.settings.number("coeff", 1)
    if factor == 1:
        return of.result(operators[operation], x, axes, rank=axis, keepdims=0)
    total = of.add(operators[operation], x, axes, keepdims=0)
    return of.result("Mul", total, of.build.constant(factor), rank=axis)


@layer("ArgMax")
def argmax(of: Layer) -> Value:
    """Return the place of the maximum along an axis, or in each sample, as floats as in Caffe."""
    if of.settings.flag("out_max_val", False) or of.settings.integer("top_k", 1) != 1:
        of.fail("values of maxima and places of several are not supported")
    x = of.x.name
    if of.settings.has("axis"):
        axis = of.axis(of.settings.integer("axis", 1, -9, 9))
        return of.result("Cast", of.add("ArgMax", x, axis=axis, keepdims=1), to=1)
    place = of.add("ArgMax", of.add("Flatten", x, axis=1), axis=1, keepdims=1)
    place = of.add("Unsqueeze", place, of.build.integers(1))
    return of.result("Cast", place, to=1, rank=3)
