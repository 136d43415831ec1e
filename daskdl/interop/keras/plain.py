"""Keras layers without weights: activations, pooling, shapes, merges."""

from __future__ import annotations

import functools

import numpy as np

from daskdl.interop.building import Value
from daskdl.interop.keras import masks
from daskdl.interop.keras.layers import Layer, activation, axes_of, layer
from daskdl.interop.keras.topology import NUMBER
from daskdl.interop.layer import bordered, clipped, dropout_of, operator_of, repeated

#: Layers that change samples at random in training, and do nothing in inference.
_AUGMENTING = (
    "RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast", "RandomBrightness",
    "RandomTranslation", "RandomShear", "RandomHue", "RandomSaturation", "RandomSharpness",
    "StochasticDepth",
)  # fmt: skip
_MERGES = {
    "Add": "Add", "Subtract": "Sub", "Multiply": "Mul", "Divide": "Div",
    "Maximum": "Max", "Minimum": "Min",
}  # fmt: skip


@layer("Activation", keys="activation", mask="keeps")
def activated(of: Layer) -> Value:
    """Compute an activation by its name."""
    return activation(of, of.x, of.settings.get("activation"))


@layer("ReLU", keys="max_value negative_slope threshold", mask="keeps")
@layer("LeakyReLU", keys="alpha negative_slope", mask="keeps")
@layer("Softmax", keys="axis", mask="refuses")
def rectified(of: Layer) -> Value:
    """Compute an activation with settings."""
    x = of.x
    if of.kind == "Softmax":
        axis = of.settings.get("axis", -1)
        if axis not in (-1, of.rank - 1):
            of.fail(f"axis: expected the last one, found {str(axis)[:60]}")
        return activation(of, x, "softmax")
    if of.kind == "LeakyReLU":
        slope = of.number("negative_slope", of.number("alpha", 0.3))
        return of.node(x, "LeakyRelu", x.name, alpha=slope)
    if of.number("threshold", 0):
        of.fail("threshold: expected 0")
    most = of.settings.get("max_value")
    slope = of.number("negative_slope", 0) if of.settings.get("negative_slope") is not None else 0
    if most is None:
        operator = "LeakyRelu" if slope else "Relu"
        return of.node(x, operator, x.name, alpha=slope or None)
    if slope:
        x = of.build.made(x, "LeakyRelu", x.name, alpha=slope, name=f"{of.name}/slope")
        return of.node(x, "Min", x.name, of.build.constant(of.number("max_value", 6)))
    return clipped(of, 0, of.number("max_value", 6))


layer("ELU", keys="alpha", mask="keeps")(operator_of("Elu", alpha=("alpha", 1)))
layer("ThresholdedReLU", keys="theta", mask="keeps")(
    operator_of("ThresholdedRelu", alpha=("theta", 1))
)
layer("Dropout", "SpatialDropout1D", "SpatialDropout2D", "AlphaDropout", "GaussianDropout",
      keys="rate data_format", mask="keeps")(dropout_of("rate"))  # fmt: skip


@layer("GaussianNoise", "ActivityRegularization", keys="stddev l1 l2", mask="keeps")
@layer(*_AUGMENTING, keys="data_format mode factor lower upper width_factor height_factor "
       "x_factor y_factor fill_mode fill_value interpolation value_range scale "
       "bounding_box_format drop_path_rate")  # fmt: skip
def identity(of: Layer) -> Value:
    """Return the input: in inference the layer does nothing."""
    return of.x


@layer("Masking", keys="mask_value")
def masking(of: Layer) -> Value:
    """Leave out the steps whose numbers all are the mask's value; they become zeros."""
    x = of.build.last(of.x)
    away = of.add("Sub", x.name, of.build.constant(of.number("mask_value", 0)))
    most = of.add("ReduceMax", of.add("Abs", away), of.build.integers(-1), keepdims=0)
    of.mask = masks.of_numbers(of, most)
    return of.node(x, "Mul", x.name, masks.floats(of, of.mask))


@layer("Resizing", off="crop_to_aspect_ratio pad_to_aspect_ratio antialias",
       keys="height width interpolation fill_mode fill_value data_format")  # fmt: skip
def resizing(of: Layer) -> Value:
    """Resize images by bilinear interpolation."""
    of.last_channels()
    if axes_of(of) != 2 or of.settings.get("interpolation", "bilinear") != "bilinear":
        of.fail(f"interpolation: expected bilinear, found {of.settings.get('interpolation')!r}")
    x, sizes = of.build.second(of.x), [of.integer(name, least=1) for name in ("height", "width")]
    lengths = of.add("Concat", of.add("Shape", x.name, end=2), of.build.integers(*sizes), axis=0)
    return of.node(x, "Resize", x.name, "", "", lengths, mode="linear",
                   coordinate_transformation_mode="half_pixel")  # fmt: skip


@layer("Rescaling", keys="scale offset", mask="keeps")
def rescaling(of: Layer) -> Value:
    """Multiply by a scale and add an offset, or by one for each channel."""
    y = of.x
    for operator, name, default in ("Mul", "scale", 1), ("Add", "offset", 0):
        value = of.settings.get(name, default)
        rank = int(isinstance(value, list))
        numbers = of.build.constant(value if rank else of.number(name, default))
        y = of.build.broadcast(y, Value(numbers, rank), operator, of.name)
    return y


@layer(
    "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D", "AveragePooling2D",
    "AveragePooling3D", "MaxPool1D", "MaxPool2D", "AvgPool1D", "AvgPool2D",
    keys="pool_size strides padding data_format",
)  # fmt: skip
def pooling(of: Layer) -> Value:
    """Take the maximum or the mean of windows."""
    of.last_channels()
    axes = axes_of(of)
    kernel = of.integers("pool_size", axes, 2)
    has_strides = of.settings.get("strides") is not None
    return of.build.pooled(
        of.x, "MaxPool" if of.kind.startswith("Max") else "AveragePool", name=of.name,
        kernel=kernel, strides=of.integers("strides", axes) if has_strides else kernel,
        padding=of.padding().upper(),
    )  # fmt: skip


@layer(
    "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "GlobalAveragePooling2D",
    "GlobalAveragePooling3D", "GlobalMaxPool2D", "GlobalAvgPool2D", keys="data_format keepdims",
)  # fmt: skip
@layer("GlobalAveragePooling1D", keys="data_format keepdims", mask="uses")
def global_pooling(of: Layer) -> Value:
    """Take the maximum or the mean of all pixels."""
    of.last_channels()
    axes = axes_of(of)
    operator = "ReduceMax" if "Max" in of.kind else "ReduceMean"
    x, keep = of.x, of.flag("keepdims")
    if not of.mask:
        return of.build.reduced(x, operator, range(1, axes + 1), keep, of.name)
    x, weight, steps = of.build.last(x), masks.floats(of, of.mask), of.build.integers(1)
    sums = of.add("ReduceSum", of.add("Mul", x.name, weight), steps, keepdims=int(keep))
    count = of.add("ReduceSum", weight, steps, keepdims=int(keep))
    of.mask = ""
    return of.result("Div", sums, count, rank=3 if keep else 2)


@layer("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", keys="padding data_format")
@layer("Cropping1D", "Cropping2D", "Cropping3D", keys="cropping data_format")
def border(of: Layer) -> Value:
    """Pad by zeros, or crop."""
    of.last_channels()
    name, sign = ("cropping", -1) if of.kind.startswith("Crop") else ("padding", 1)
    widths = of.pairs(name, axes_of(of))
    before, behind = ([sign * width[side] for width in widths] for side in (0, 1))
    return bordered(of, of.build.second(of.x), before, behind)


@layer("UpSampling1D", "UpSampling2D", keys="size data_format interpolation")
def upsampling(of: Layer) -> Value:
    """Repeat pixels, or interpolate between them."""
    of.last_channels()
    axes = axes_of(of)
    times = of.integers("size", axes, 2)
    how = of.settings.get("interpolation", "nearest")
    if how not in ("nearest", "bilinear"):
        of.fail(f"interpolation: expected nearest or bilinear, found {str(how)[:60]}")
    x = of.build.second(of.x)
    if how == "nearest":
        return repeated(of, x, times)
    scales = of.build.constant([1, 1, *times])
    return of.node(x, "Resize", x.name, "", scales, mode="linear",
                   coordinate_transformation_mode="half_pixel")  # fmt: skip


@layer("Flatten", keys="data_format")
def flatten(of: Layer) -> Value:
    """Merge all axes but the first."""
    of.last_channels()
    x = of.build.last(of.x)
    return Value(of.build.node("Flatten", x.name, name=of.name, axis=1), 2)


@layer("Reshape", keys="target_shape")
def reshape(of: Layer) -> Value:
    """Reshape samples; a length of -1 is inferred."""
    target = of.settings.get("target_shape")
    if not isinstance(target, (list, tuple)) or not all(
        type(n) is int and -1 <= n <= 1 << 30 and n for n in target
    ):
        of.fail(f"target_shape: expected lengths, found {str(target)[:60]}")
    x = of.build.last(of.x)
    name = of.build.node("Reshape", x.name, of.build.integers(0, *target), name=of.name)
    return Value(name, len(target) + 1)


@layer("Permute", keys="dims")
def permute(of: Layer) -> Value:
    """Permute all axes but the first."""
    order = of.settings.get("dims")
    if not isinstance(order, (list, tuple)) or sorted(map(str, order)) != sorted(
        str(i) for i in range(1, of.rank)
    ):
        of.fail(f"dims: expected each of {of.rank - 1} axes once, found {str(order)[:60]}")
    x = of.build.last(of.x)
    return of.node(x, "Transpose", x.name, perm=(0, *order))


@layer("RepeatVector", keys="n")
def repeat(of: Layer) -> Value:
    """Repeat vectors along a new axis."""
    x, build = of.build.last(of.x), of.build
    times = of.integer("n", 1, 1)
    y = build.node("Unsqueeze", x.name, build.integers(1))
    return Value(build.node("Tile", y, build.integers(1, times, 1), name=of.name), 3)


@layer(*_MERGES, "Average", keys="numpy", several=True, mask="keeps")
def merge(of: Layer) -> Value:
    """Add, subtract, multiply, divide or average values, or take their maximum or minimum.

    Layers match the axes of samples and of channels: (N, C) is (N, 1, 1, C) for an image.
    Operations, whose setting ``numpy`` is true, match the last axes.
    """
    if len(of.inputs) < 2:
        of.fail(f"expected several inputs, found {len(of.inputs)}")
    if of.settings.get("numpy") and of.mask:
        of.mask = None  # versions of Keras differ in whether an operation keeps the mask
    operator = _MERGES.get(of.kind, "Add")
    ranks = [value.rank or 0 for value in of.inputs]
    constant = any(value.name in of.build.constants for value in of.inputs)
    values = of.inputs
    if not (of.settings.get("numpy") or constant or min(ranks) < 2):
        values = [_of_rank(of, value, max(ranks)) for value in values]
    merged = functools.reduce(lambda a, b: of.build.broadcast(a, b, operator, of.name), values)
    if of.kind != "Average":
        return merged
    return of.build.made(merged, "Mul", merged.name, of.build.constant(1 / len(of.inputs)))


def _of_rank(of: Layer, value: Value, rank: int) -> Value:
    """Return a value with axes of length 1 behind the samples' axis, up to a rank."""
    if value.rank == rank:
        return value
    x, missing = of.build.last(value), rank - (value.rank or 0)
    axes = of.build.integers(*range(1, 1 + missing))
    return Value(of.build.node("Unsqueeze", x.name, axes), rank)


@layer("CustomScaleLayer", keys="scale", several=True)
def scaled_sum(of: Layer) -> Value:
    """Add a branch times a number to another, as Keras' InceptionResNetV2 does."""
    if len(of.inputs) != 2:
        of.fail(f"expected two inputs, found {len(of.inputs)}")
    scale = Value(of.build.constant(of.number("scale", 1)), 0)
    branch = of.build.broadcast(of.inputs[1], scale, "Mul", f"{of.name}/scale")
    return of.build.broadcast(of.inputs[0], branch, "Add", of.name)


@layer(NUMBER, keys="value", several=True)
def number(of: Layer) -> Value:
    """Give a number or an array that is an operand."""
    array = np.asarray(of.settings["value"])
    return Value(of.build.constant(array), array.ndim)


@layer("Concatenate", keys="axis", several=True, mask="keeps")
def concatenate(of: Layer) -> Value:
    """Join along an axis."""
    axis = of.settings.get("axis", -1)
    if type(axis) is not int or not -of.rank <= axis < of.rank:
        of.fail(f"axis: expected one of {of.rank}, found {str(axis)[:60]}")
    if of.mask and axis not in (-1, of.rank - 1):
        of.mask = None
    return of.build.joined(of.inputs, axis, of.name)
