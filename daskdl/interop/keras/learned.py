"""Keras' layers with weights: convolutions, products, normalisations, tables, slopes."""

from __future__ import annotations

import numpy as np

from daskdl.interop.building import Value, depthwise, filters_second
from daskdl.interop.keras.layers import Layer, axes_of, layer

#: Settings that all convolutions have.
_CONV = "strides padding data_format dilation_rate activation use_bias"


@layer("Conv1D", "Conv2D", "Conv3D", "Convolution1D", "Convolution2D",
       keys=f"filters kernel_size groups {_CONV}")  # fmt: skip
@layer("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose",
       keys=f"filters kernel_size output_padding {_CONV}")  # fmt: skip
@layer("DepthwiseConv1D", "DepthwiseConv2D", keys=f"depth_multiplier kernel_size {_CONV}")
@layer("SeparableConv1D", "SeparableConv2D",
       keys=f"filters depth_multiplier kernel_size {_CONV}")  # fmt: skip
def conv(of: Layer) -> Value:
    """Convolve with filters (..., in, out), transposed ones with (..., out, in).

    Depthwise ones have filters (..., C, multiplier), each for one channel; separable ones mix the
    channels then.
    """
    of.last_channels()
    axes, turned, mixes = (
        axes_of(of),
        of.kind.endswith("Transpose"),
        of.kind.startswith("Separable"),
    )
    single = mixes or of.kind.startswith("Depthwise")
    weight_name = "depthwise_kernel" if mixes else "kernel"
    kernel = of.array(0, weight_name.replace("_", " "), axes + 2)
    mixing = of.array(1, "pointwise kernel", axes + 2) if mixes else None
    lengths, change = kernel.shape[:axes], depthwise if single else filters_second
    strides, dilation = of.integers("strides", axes, 1), of.integers("dilation_rate", axes, 1)
    padding: str | tuple[int, int]
    if of.settings.get("padding") == "causal" and of.kind in ("Conv1D", "Convolution1D"):
        padding = ((lengths[0] - 1) * dilation[0], 0)
    else:
        padding = of.padding().upper()
    if turned and (of.settings.get("output_padding") is not None or set(dilation) != {1}):
        of.fail("output_padding and dilation are not supported")
    if turned and padding == "VALID" and any(s > k for s, k in zip(strides, lengths, strict=True)):
        of.fail(f"expected strides of up to the kernel's {lengths}, found {strides}")
    y = of.build.convolved(
        of.x, of.weight(weight_name, change(kernel), of.build.filters), "" if mixes else of.bias(1),
        operator="ConvTranspose" if turned else "Conv",
        name=f"{of.name}/depthwise" if mixes else of.name, padding=padding, strides=strides,
        dilations=dilation, group=kernel.shape[-2] if single else of.integer("groups", 1, 1),
    )  # fmt: skip
    if mixing is not None:
        y = of.build.convolved(
            y, of.weight("pointwise_kernel", filters_second(mixing), of.build.filters), of.bias(2),
            name=of.name, padding="VALID", strides=(1,) * axes, dilations=(1,) * axes,
        )  # fmt: skip
    return of.activated(y)


@layer("Dense", keys="units activation use_bias input_dim", mask="keeps")
def dense(of: Layer) -> Value:
    """Multiply with a matrix (in, out)."""
    x = of.build.last(of.x)
    kernel = of.weight("kernel", of.array(0, "kernel", 2))
    bias = of.bias(1)
    if x.rank == 2 and bias:
        return of.activated(of.node(x, "Gemm", x.name, kernel, bias))
    y = of.build.made(x, "MatMul", x.name, kernel, name=of.name)
    return of.activated(of.node(y, "Add", y.name, bias) if bias else y)


@layer("Embedding", keys="input_dim output_dim input_length mask_zero")
def embedding(of: Layer) -> Value:
    """Look up rows of a table."""
    x = of.build.last(of.x)
    table = of.weight("embeddings", of.array(0, "embeddings", 2))
    ids = of.build.node("Cast", x.name, to=7)
    return Value(of.build.node("Gather", table, ids, name=of.name), of.rank + 1)


def _last_axis(of: Layer) -> None:
    axis = of.settings.get("axis", -1)
    axis = axis[0] if isinstance(axis, (list, tuple)) and len(axis) == 1 else axis
    if axis not in (-1, of.rank - 1):
        of.fail(f"axis: expected the last one, found {str(axis)[:60]}")


@layer("BatchNormalization", mask="keeps", off="renorm virtual_batch_size adjustment",
       keys="axis momentum epsilon center scale synchronized fused renorm_clipping "
       "renorm_momentum")  # fmt: skip
def batch_norm(of: Layer) -> Value:
    """Normalise by running statistics."""
    _last_axis(of)
    count = of.flag("scale", True) + of.flag("center", True)
    mean, variance = (of.array(count + i, "statistics", 1) for i in (0, 1))
    scale = of.weight("gamma", of.array(0, "gamma", 1)) if of.flag("scale", True) else ""
    bias = of.weight("beta", of.array(count - 1, "beta", 1)) if of.flag("center", True) else ""
    statistics = (
        of.weight("moving_mean", mean, of.build.buffer),
        of.weight("moving_variance", variance, of.build.buffer),
    )
    eps, momentum = of.number("epsilon", 1e-3), of.number("momentum", 0.99)
    return of.build.normalised(of.x, scale, bias, statistics, eps, of.name, momentum)


@layer("LayerNormalization", keys="axis epsilon center scale", off="rms_scaling", mask="keeps")
def layer_norm(of: Layer) -> Value:
    """Normalise each sample's last axis."""
    _last_axis(of)
    x = of.build.last(of.x)
    scaled, centred = of.flag("scale", True), of.flag("center", True)
    if not scaled:
        of.fail("expected a scale")
    inputs = [x.name, of.weight("gamma", of.array(0, "gamma", 1))]
    if centred:
        inputs.append(of.weight("beta", of.array(1, "beta", 1)))
    return of.node(x, "LayerNormalization", *inputs, axis=-1, epsilon=of.number("epsilon", 1e-3))


@layer("PReLU", keys="shared_axes", mask="keeps")
def prelu(of: Layer) -> Value:
    """Multiply what is negative with a slope that is learned."""
    x = of.build.last(of.x)
    return of.node(x, "PRelu", x.name, of.weight("alpha", of.array(0, "alpha")))


@layer("Normalization", keys="axis invert mean variance", mask="keeps")
def normalization(of: Layer) -> Value:
    """Subtract a mean and divide by a deviation, both of the data that it was adapted to.

    Inverted, it multiplies by the deviation and adds the mean.
    """
    statistics = of.settings.get("mean"), of.settings.get("variance")
    if None not in statistics:
        mean, variance = (np.asarray(value, np.float32) for value in statistics)
    elif len(of.arrays) >= 2:
        mean, variance = of.array(0, "mean"), of.array(1, "variance")
    else:
        of.fail("expected a mean and a variance, found none; call its adapt() before saving")
    if of.settings.get("axis") in (None, [], ()):
        if mean.size != 1 or variance.size != 1:
            of.fail(f"expected one mean for all axes, found {mean.shape}")
        mean, variance = mean.reshape(()), variance.reshape(())
    else:
        _last_axis(of)
        mean, variance = (a.reshape(-1) if a.size > 1 else a.reshape(()) for a in (mean, variance))
    x, build = of.build.last(of.x), of.build
    deviation = build.constant(np.maximum(np.sqrt(variance), 1e-7))
    steps = [("Sub", build.constant(mean)), ("Div", deviation)]
    if of.flag("invert"):
        steps = [("Mul", deviation), ("Add", build.constant(mean))]
    (first, by), (second, then) = steps
    y = build.made(x, first, x.name, by, name=f"{of.name}/{first.lower()}")
    return of.node(y, second, y.name, then)
