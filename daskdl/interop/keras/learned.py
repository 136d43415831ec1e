"""Keras layers with weights: convolutions, products, norms, embeddings, recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.interop.building import Value, depthwise, filters_second
from daskdl.interop.keras import masks
from daskdl.interop.keras.layers import Layer, axes_of, function_of, layer
from daskdl.tensor import Array

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
    """Convolve with filters (..., in, out); transposed convolutions have (..., out, in).

    Depthwise convolutions have filters (..., C, multiplier), each for one channel; separable
    ones mix the channels afterwards.
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
    """Multiply by a matrix (in, out)."""
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
    if of.flag("mask_zero"):
        of.mask = masks.of_numbers(of, ids)
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


@layer("GroupNormalization", keys="groups axis epsilon center scale", mask="keeps")
def group_norm(of: Layer) -> Value:
    """Normalise groups of each sample's channels; -1 makes a group of each channel."""
    _last_axis(of)
    scaled, centred = of.flag("scale", True), of.flag("center", True)
    if not (scaled or centred) or of.rank < 3:
        of.fail("expected steps or images, and a scale or a centre")
    count, x = of.array(0, "weights", 1).size, of.build.second(of.x)
    ones, zeros = of.build.constant(np.ones(count)), of.build.constant(np.zeros(count))
    gamma = of.weight("gamma", of.array(0, "gamma", 1)) if scaled else ones
    beta = of.weight("beta", of.array(int(scaled), "beta", 1)) if centred else zeros
    groups, eps = of.integer("groups", 32, -1), of.number("epsilon", 1e-3)
    return of.node(x, "GroupNormalization", x.name, gamma, beta, epsilon=eps,
                   num_groups=count if groups == -1 else groups)  # fmt: skip


@layer("PReLU", keys="shared_axes", mask="keeps")
def prelu(of: Layer) -> Value:
    """Multiply negative numbers by a learned slope."""
    x = of.build.last(of.x)
    return of.node(x, "PRelu", x.name, of.weight("alpha", of.array(0, "alpha")))


@layer("LayerScale", keys="init_values projection_dim", mask="keeps")
def layer_scale(of: Layer) -> Value:
    """Multiply each channel by a learned number, as Keras' ConvNeXt does."""
    x = of.build.last(of.x)
    return of.node(x, "Mul", x.name, of.weight("gamma", of.array(0, "gamma", 1)))


@layer("Normalization", keys="axis invert mean variance", mask="keeps")
def normalization(of: Layer) -> Value:
    """Subtract the mean and divide by the deviation of the data of ``adapt``.

    With ``invert``, multiply by the deviation and add the mean.
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


#: ONNX's name, and the places of its gates in Keras's order.
_KINDS = {"LSTM": ("LSTM", (0, 3, 1, 2)), "GRU": ("GRU", (0, 1, 2)), "SimpleRNN": ("RNN", (0,))}
#: Settings of recurrent layers; dropout does nothing in inference.
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
    """Return ONNX's settings of one direction; unsupported activations are refused."""
    names = ["activation"] if kind == "SimpleRNN" else ["recurrent_activation", "activation"]
    defaults = {"activation": "tanh", "recurrent_activation": "sigmoid"}
    functions = [function_of(of, config.get(name, defaults[name])) for name in names]
    if any(name not in _FUNCTIONS for name in functions):
        of.fail(f"expected activations of {', '.join(_FUNCTIONS)}, found {functions}")
    functions += functions[-1:] if kind == "LSTM" else []
    settings: dict[str, Any] = {"functions": tuple(_FUNCTIONS[name] for name in functions)}
    if kind == "GRU":
        # Keras 2's default was False; files of tf.keras and later always have the setting.
        settings["reset"] = int(bool(config.get("reset_after", of.version >= 3)))
    return settings


def _direction(
    of: Layer, arrays: list[Array], kind: str, bias: bool, reset: int
) -> tuple[Array, Array, Array]:
    """Return the weights of one direction in ONNX's layout."""
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
    biases = np.concatenate([_rows(part, order) for part in both])
    return _rows(arrays[0], order), _rows(arrays[1], order), biases


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
    build, sequence, lengths = of.build, x.name, list[str]()
    all_states, zeros = (
        bool(config.get("return_sequences")),
        bool(config.get("zero_output_for_mask")),
    )
    if of.mask:
        if zeros and not all_states and not both:
            of.fail("zero_output_for_mask: expected return_sequences with it")
        sequence, *lengths = masks.packed(of, sequence, of.mask)
    results = build.nodes_of(  # ONNX and its runtimes have the time axis first
        _KINDS[kind][0],
        [build.transposed(sequence, (1, 0, 2)), *names, *lengths],
        [f"{of.name}/sequence", f"{of.name}/last"],
        **attributes,
    )
    if all_states:
        if backwards and not both:
            of.fail("sequences that go backwards are not supported")
        first = build.transposed(results[0], (2, 0, 1, 3))
        y = build.node("Reshape", first, build.integers(0, 0, -1), name=of.name)
        return Value(masks.spread(of, y, of.mask, zeros) if of.mask else y, 3)
    of.mask = ""
    first = build.transposed(results[1], (1, 0, 2))
    return Value(build.node("Flatten", first, axis=1, name=of.name), 2)


@layer(*_KINDS, keys=_KEYS, off=_OFF, mask="uses")
def recurrent(of: Layer) -> Value:
    """Run over time; return all states, or the last one."""
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
