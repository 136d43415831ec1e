"""The table of Caffe's layers, and layers with weights: convolutions, products, normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.interop.building import Builder, Table, Value, by_channel
from daskdl.interop.caffe.files import Message
from daskdl.interop.guard import check_keys
from daskdl.interop.layer import Layer as Base
from daskdl.interop.layer import slopes, unit
from daskdl.tensor import Array

#: Names of settings that differ from the kind in lower case.
_SETTINGS = {
    "InnerProduct": "inner_product", "BatchNorm": "batch_norm", "Normalize": "norm",
    "ReLU6": "clip", "ShuffleChannel": "shuffle_channel", "PriorBox": "prior_box",
    "DetectionOutput": "detection_output", "ConvolutionDepthwise": "convolution",
    "DepthwiseConvolution": "convolution", "Deconvolution": "convolution",
}  # fmt: skip

#: Fields that any layer may have.
_ANY = {
    "name", "type", "bottom", "top", "param", "blobs_lr", "weight_decay", "loss_weight", "include",
    "exclude", "phase", "propagate_down", "blob_share_mode",
}  # fmt: skip
#: Settings that change no result, or follow from the shapes of weights and bottoms.
_IGNORED = {
    "engine", "force_nd_im2col", "scale_train", "stable_prod_grad", "num_axes", "channel_shared",
    "input_dim", "frozen", "save_output_param", "visualize", "visualize_threshold",
}  # fmt: skip


class Layer(Base):
    """One layer of a network, by its kind in Caffe's second version.

    ``names`` are the names of its results, ``settings`` the message of its kind, such as
    convolution_param, ``blobs`` its weights; ``scale`` is the Scale behind a BatchNorm.
    """

    def __init__(
        self, kind: str, build: Builder, bottoms: list[Value], names: list[str], message: Message,
        blobs: list[Array], shared: dict[Any, str],
    ) -> None:  # fmt: skip
        name = message.word("name")
        settings = message.part(f"{_SETTINGS.get(kind, kind.lower())}_param")
        place = f"{message.where}: layer {name!r}, {kind}"
        super().__init__(place, name, kind, build, bottoms, settings, shared)
        self.names, self.output, self.message, self.blobs = names, names[0], message, blobs
        self.scale: Layer | None = None

    @property
    def x(self) -> Value:
        """The first bottom."""
        return self.bottom(0)

    def bottom(self, i: int) -> Value:
        """Return an input by number."""
        if i >= len(self.inputs):
            self.fail(f"expected {i + 1} bottoms, found {len(self.inputs)}")
        return self.inputs[i]

    def number(self, name: str, default: float | None = None) -> float:
        """Return a setting that must be a number, by default 0."""
        value: float = self.settings.number(name, default or 0.0)
        return value

    def check_read(self) -> None:
        """Refuse settings of the layer and its kind that the translation did not read."""
        others = {n: v for n, v in self.message.fields.items() if not n.endswith("_param")}
        check_keys(self.place, others, _ANY)
        made = {n: v for n, v in self.settings.fields.items() if not n.endswith("filler")}
        check_keys(self.place, made, self.settings.asked, _IGNORED)

    def blob(self, i: int, role: str) -> Array:
        """Return a blob as float32."""
        if i >= len(self.blobs):
            self.fail(
                f"expected its {role}, found {len(self.blobs)} blobs under this name; are the "
                "weights those of this network?"
            )
        return self.blobs[i].astype(np.float32, copy=False)

    def vector(self, i: int, role: str, count: int) -> Array:
        """Return weights with one number per channel, (count,); old files give them four axes."""
        blob = self.blob(i, role)
        if blob.size != count:
            self.fail(f"expected {count} numbers as {role}, found {blob.size}")
        return blob.reshape(count)

    def bias(self, count: int) -> str:
        """Add the bias; return its name, "" if the layer has none."""
        if not self.settings.flag("bias_term", True):
            return ""
        return self.weight(1, "bias", self.vector(1, "bias", count))

    def weight(self, i: int, role: str, array: Array, filters: bool = False) -> str:
        """Add weights to the graph, once if layers share them; return their name."""
        specs = self.message.values("param")
        spec = specs[i] if i < len(specs) else ""
        key = spec.word("name") if isinstance(spec, Message) else spec
        add = self.build.filters if filters else self.build.parameter
        name = f"{self.name}.{role}"
        return (
            self.added(key, name, array, add) if key and isinstance(key, str) else add(name, array)
        )


TABLE = Table()
#: Decorator that registers a function for its kinds of layers.
layer = TABLE.of


#: Largest accepted kernel, stride or dilation.
LARGEST = 4096


def spatial(of: Layer, name: str, default: int, axes: int) -> list[int]:
    """Return a setting for each axis of images: one for all, one each, or ``_h`` and ``_w``."""
    settings, least = of.settings, 0 if name == "pad" else 1
    short = name.removesuffix("_size")
    if settings.has(f"{short}_h") or settings.has(f"{short}_w"):
        return [settings.integer(f"{short}_{end}", default, least, LARGEST) for end in "hw"]
    numbers: list[int] = settings.integers(name, least, LARGEST) or [default]
    numbers = numbers * axes if len(numbers) == 1 else numbers
    if len(numbers) != axes:
        of.fail(f"{name}: expected one number or {axes}, found {numbers}")
    return numbers


@layer("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution", "Deconvolution")
def convolution(of: Layer) -> Value:
    """Convolve with weights (M, C / group, ...); for Deconvolution (C, M / group, ...)."""
    weight = of.blob(0, "weights")
    axes = weight.ndim - 2
    if not 1 <= axes <= 3 or of.settings.integer("axis", 1, -9, 9) != 1 or of.rank != axes + 2:
        of.fail(f"expected images of {axes} axes and the channels on axis 1")
    count = of.settings.integer("num_output")
    turned = of.kind == "Deconvolution"
    depthwise = of.kind.endswith(("Depthwise", "DepthwiseConvolution")) and weight.shape[1] == 1
    group = weight.shape[0] if depthwise else of.settings.integer("group", 1, 1)
    if count != (weight.shape[1] * group if turned else weight.shape[0]):
        of.fail(f"expected weights of {count} channels, found {weight.shape}")
    kernel = spatial(of, "kernel_size", 0, axes)
    if any(kernel) and tuple(kernel) != weight.shape[2:]:
        of.fail(f"expected weights of kernels {kernel}, found {weight.shape}")
    pad = spatial(of, "pad", 0, axes)
    weights = of.weight(0, "weight", weight, filters=True)
    return of.build.convolved(
        of.x, weights, of.bias(count), operator="ConvTranspose" if turned else "Conv",
        name=of.output, strides=spatial(of, "stride", 1, axes), padding=(*pad, *pad),
        dilations=spatial(of, "dilation", 1, axes), group=group,
    )  # fmt: skip


@layer("InnerProduct")
def inner_product(of: Layer) -> Value:
    """Flatten the axes from ``axis`` on, and multiply by a matrix."""
    count = of.settings.integer("num_output", 0, 1)
    turned = of.settings.flag("transpose", False)
    weight = of.blob(0, "weights")
    if weight.size % count:
        of.fail(f"expected weights of {count} outputs, found {weight.shape}")
    weight = weight.reshape((-1, count) if turned else (count, -1))
    axis = of.axis(of.settings.integer("axis", 1, -9, 9))
    x, rank = of.x.name, of.rank
    more = [name for name in (of.bias(count),) if name]
    matrix = of.weight(0, "weight", weight)
    if axis == 1:
        rows = x if rank == 2 else of.add("Flatten", x, axis=1)
        return of.result("Gemm", rows, matrix, *more, rank=2, transB=int(not turned))
    if axis != rank - 1:
        lead = of.add("Shape", x, start=0, end=axis)
        x = of.add("Reshape", x, of.add("Concat", lead, of.build.integers(-1), axis=0))
    matrix = matrix if turned else of.add("Transpose", matrix, perm=(1, 0))
    if not more:
        return of.result("MatMul", x, matrix, rank=axis + 1)
    return of.result("Add", of.add("MatMul", x, matrix), *more, rank=axis + 1)


@layer("Embed")
def embed(of: Layer) -> Value:
    """Look up rows of a table by ids."""
    count = of.settings.integer("num_output", 0, 1)
    table = of.blob(0, "weights")
    if table.size % count:
        of.fail(f"expected weights of {count} outputs, found {table.shape}")
    ids = of.add("Cast", of.x.name, to=7)
    weight = of.weight(0, "weight", table.reshape(-1, count))
    rank, bias = of.rank + 1, of.bias(count)
    if not bias:
        return of.result("Gather", weight, ids, rank=rank)
    return of.result("Add", of.add("Gather", weight, ids), bias, rank=rank)


@layer("BatchNorm")
def batch_norm(of: Layer) -> Value:
    """Normalise by the running sums of means and variances, divided by the sum of their weights."""
    if not of.settings.flag("use_global_stats", True):
        of.fail("use_global_stats: expected true, as in files to deploy, found false")
    mean = of.blob(0, "mean").reshape(-1)
    variance = of.vector(1, "variance", mean.size)
    total = float(of.vector(2, "moving factor", 1)[0])
    factor = np.float32(1 / total if total else 0)
    scale = bias = ""
    if of.scale is not None:
        weights = of.scale
        scale = weights.weight(0, "weight", weights.vector(0, "scale", mean.size))
        if weights.settings.flag("bias_term", False):
            bias = weights.weight(1, "bias", weights.vector(1, "bias", mean.size))
    momentum = of.number("moving_average_fraction", 0.999)
    return _normalised(of, scale, bias, mean * factor, variance * factor, momentum)


@layer("BN")
def bn(of: Layer) -> Value:
    """Normalise by running statistics, scale and shift in one layer (SegNet, PSPNet)."""
    if (mode := of.settings.word("bn_mode", "INFERENCE")) != "INFERENCE":
        of.fail(f"bn_mode: expected INFERENCE, found {mode}")
    slope = of.blob(0, "scale").reshape(-1)
    shift, mean, variance = (
        of.vector(i, quantity, slope.size)
        for i, quantity in ((1, "shift"), (2, "mean"), (3, "variance"))
    )
    scale, bias = of.weight(0, "weight", slope), of.weight(1, "bias", shift)
    return _normalised(of, scale, bias, mean, variance, of.number("momentum", 0.9))


def _normalised(
    of: Layer, scale: str, bias: str, mean: Array, variance: Array, momentum: float
) -> Value:
    names = (
        of.build.buffer(f"{of.name}.running_mean", mean),
        of.build.buffer(f"{of.name}.running_variance", variance),
    )
    eps = of.number("eps", 1e-5)
    return of.build.normalised(of.x, scale, bias, names, eps, of.output, momentum)


def _before(of: Layer, name: str, behind: int) -> str:
    """Append ``behind`` axes of one element to a value; return its name."""
    axes = range(-behind, 0)
    return of.add("Unsqueeze", name, of.build.integers(*axes)) if behind > 0 else name


def _aligned(of: Layer, i: int, role: str, axis: int) -> str:
    """Return weights of a Scale or Bias with axes appended, so that they begin at ``axis``."""
    array = of.blob(i, role)
    behind = of.rank - axis - array.ndim
    if behind < 0:  # old files give four axes to vectors
        array, behind = array.reshape(-1), of.rank - axis - 1
    if behind < 0:
        of.fail(f"expected {role} of fewer axes, found {array.shape}")
    return _before(of, of.weight(i, "weight" if role == "scale" else "bias", array), behind)


@layer("Scale", "Bias")
def scale(of: Layer) -> Value:
    """Multiply by, or add, weights or a second bottom whose axes begin at ``axis``."""
    axis = of.axis(of.settings.integer("axis", 1, -9, 9))
    operator, quantity = ("Mul", "scale") if of.kind == "Scale" else ("Add", "bias")
    bias = of.settings.flag("bias_term", False)
    two = len(of.inputs) > 1
    if two:
        behind = of.rank - axis - of.rank_of(of.bottom(1))
        other = _before(of, of.bottom(1).name, behind)
    else:
        other = _aligned(of, 0, quantity, axis)
    more = _aligned(of, 0 if two else 1, "bias", axis) if bias else ""
    if not more:
        return of.result(operator, of.x.name, other)
    return of.result("Add", of.add(operator, of.x.name, other), more)


@layer("PReLU")
def prelu(of: Layer) -> Value:
    """Multiply negative numbers by a slope for each channel, or by one slope."""
    return slopes(of, of.blob(0, "slope"), lambda array: of.weight(0, "weight", array))


@layer("Normalize")
def normalize(of: Layer) -> Value:
    """Divide by the Euclidean norm of each pixel's channels, or of the sample; scale channels."""
    axes = range(1, of.rank) if of.settings.flag("across_spatial", True) else (1,)
    part = of.add("Div", *unit(of, axes, of.number("eps", 1e-10)))
    slope = by_channel(of.blob(0, "scale"), of.rank)
    return of.result("Mul", part, of.weight(0, "weight", slope))
