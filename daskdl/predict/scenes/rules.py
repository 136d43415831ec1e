"""Rules: the cells that each operation's results see, used in one pass of an image of zeros."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.kernels.convolution import few_filters
from daskdl.kernels.convolution.conv2d import way
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.winograd import M
from daskdl.nn.core.arguments import as_arrays, call
from daskdl.ops.norm.batchnorm import _inference as batch_norm
from daskdl.ops.pool.resample import two_places
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.reach import RULES, Array, Field, Operation, Reach, UnknownError, rule
from daskdl.tensor import Tensor, no_grad, watched_operations


@rule(
    ops.add, ops.subtract, ops.multiply, ops.divide, ops.maximum, ops.minimum, ops.where, ops.pow,
    ops.relu, ops.relu6, ops.leaky_relu, ops.prelu, ops.elu, ops.gelu, ops.silu, ops.sigmoid,
    ops.tanh, ops.softplus, ops.hard_sigmoid, ops.hard_tanh, ops.hard_swish, ops.softsign, ops.exp,
    ops.log, ops.sqrt, ops.square, ops.abs, ops.power, ops.clip, ops.threshold, ops.dropout,
    ops.cast, ops.negative, ops.erf, ops.sin, ops.cos, batch_norm,
)  # fmt: skip
def _pointwise(operation: Operation, result: Array) -> Field:
    """Each result sees the same place of every input."""
    known = [(a, f) for a, f in zip(operation.arrays, operation.fields, strict=True) if f]
    axes = known[0][1].axes
    for array, field in zip(operation.arrays, operation.fields, strict=True):
        shape = (1,) * (result.ndim - np.ndim(array)) + np.shape(array)
        if field is None and any(shape[axis] != 1 for axis in axes):
            raise UnknownError("with numbers of its own for each place")
    if any(f.axes != axes or a.ndim != result.ndim for a, f in known):
        raise UnknownError("which joins its axes with others")
    return Field(axes, tuple(map(_joined, zip(*(f.reaches for _, f in known), strict=True))))


def _joined(reaches: tuple[Reach, ...]) -> Reach:
    """Return the reach that covers several."""
    if len({(reach.scale, reach.length) for reach in reaches}) > 1:
        raise UnknownError("which joins images of several sizes")
    first = reaches[0]
    return first._replace(
        low=min(reach.low for reach in reaches),
        high=max(reach.high for reach in reaches),
        step=math.lcm(*(reach.step for reach in reaches)),
        least=max(reach.least for reach in reaches),
    )


@rule(ops.conv2d)
def _conv2d(operation: Operation, result: Array) -> Field:
    settings, weight = operation.settings, operation.arrays[1]
    geometry = Geometry(
        weight.shape[1:3], settings.get("stride", (1, 1)), settings.get("pad", (0, 0, 0, 0)),
        settings.get("dilation", (1, 1)), settings.get("groups", 1),
    )  # fmt: skip
    parts = list(zip(geometry.reach, geometry.stride, geometry.pad[::2], strict=True))
    blocks, wide = _blocks(geometry, operation.arrays[0].shape[3], len(weight), result.shape[2])
    return _widened(operation.windows(result, parts, blocks), operation, wide)


def _blocks(geometry: Geometry, channels: int, filters: int, columns: int) -> tuple[Any, bool]:
    """Return the (rows, columns) that a convolution computes together, and if it needs many."""
    columns = max(columns, few_filters.WIDE)
    chosen = way("forward", geometry, channels, filters, columns)
    if chosen == "few_filters":
        return (1, few_filters.together(geometry, filters, columns)), True
    return ((M, M) if chosen == "winograd" else (1, 1)), False


def _widened(field: Field, operation: Operation, wide: bool) -> Field:
    """Widen windows so that a convolution of few filters always runs the same kernel."""
    if not wide or not operation.exact:
        return field
    i = field.axes.index(2)
    reach, n = field.reaches[i], operation.lengths[i]
    lost = max(Fraction(0), n - reach.scale * reach.length)
    least = max(reach.least, math.ceil(reach.scale * few_filters.WIDE + lost))
    reaches = [*field.reaches]
    reaches[i] = reach._replace(least=least)
    return field._replace(reaches=tuple(reaches))


@rule(ops.conv_transpose2d)
def _conv_transpose2d(operation: Operation, result: Array) -> Field:
    settings, weight = operation.settings, operation.arrays[1]
    pad, stride = settings.get("pad", (0, 0, 0, 0)), settings.get("stride", (1, 1))
    geometry = Geometry(
        weight.shape[1:3], stride, pad, settings.get("dilation", (1, 1)), settings.get("groups", 1)
    )
    blocks, wide = (1, 1), False
    if stride == (1, 1):
        filters = weight.shape[3] * geometry.groups
        blocks, wide = _blocks(geometry.adjoint, len(weight), filters, result.shape[2])
    axes, reaches = operation.first
    made = []
    for i, (axis, reach) in enumerate(zip(axes, reaches, strict=True)):
        if not axis:
            made.append(reach)
            continue
        operation.single(axis)
        of = _spread(stride[axis - 1], pad[2 * axis - 2], geometry.reach[axis - 1])
        made.append(operation.along(i, reach, (*of, result.shape[axis]), blocks[axis - 1]))
    return _widened(Field(axes, tuple(made)), operation, wide)


def _spread(stride: int, before: int, seen: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return scale, low and high if each cell adds a window to the result."""
    return Fraction(1, stride), Fraction(before - seen + 1, stride), Fraction(before, stride)


@rule(ops.unfold)
def _unfold(operation: Operation, result: Array) -> Field:
    """Windows along one axis get a new axis after it."""
    settings = operation.settings
    stride, before = settings.get("stride", 1), settings["pad"][0]
    high = (settings["size"] - 1) * settings.get("dilation", 1) - before
    return _of_one_axis(operation, result, (Fraction(stride), Fraction(-before), Fraction(high)), 1)


@rule(ops.fold)
def _fold(operation: Operation, result: Array) -> Field:
    """Windows along one axis are summed; their axis after it is removed."""
    settings = operation.settings
    axis = settings["axis"]
    operation.apart(axis + 1)
    seen = (operation.arrays[0].shape[axis + 1] - 1) * settings.get("dilation", 1) + 1
    of = _spread(settings.get("stride", 1), settings["pad"][0], seen)
    return _of_one_axis(operation, result, of, -1)


def _of_one_axis(
    operation: Operation, result: Array, of: tuple[Fraction, Fraction, Fraction], more: int
) -> Field:
    """Return the field after a step along one axis, with ``more`` axes after it."""
    axis, (axes, reaches) = operation.settings["axis"], operation.first
    operation.single(axis)
    made = [
        operation.along(i, reach, (*of, result.shape[axis])) if one == axis else reach
        for i, (one, reach) in enumerate(zip(axes, reaches, strict=True))
    ]
    return Field(tuple(one + more * (one > axis) for one in axes), tuple(made))


@rule(ops.max_pool2d, ops.avg_pool2d)
def _pool(operation: Operation, result: Array) -> Field:
    size = operation.settings["kernel_size"]
    stride, pad = operation.settings.get("stride") or size, operation.settings.get("pad", (0,) * 4)
    return operation.windows(result, list(zip(size, stride, pad[::2], strict=True)))


@rule(ops.repeat, ops.depth_to_space)
def _finer(operation: Operation, result: Array) -> Field:
    axes, reaches = operation.first
    before = operation.arrays[0].shape
    made = []
    for i, (axis, reach) in enumerate(zip(axes, reaches, strict=True)):
        operation.single(axis)
        times = result.shape[axis] // before[axis]
        of = Fraction(1, times), Fraction(1 - times, times), 0, result.shape[axis]
        made.append(operation.along(i, reach, of))
    return Field(axes, tuple(made))


@rule(ops.along)
def _along(operation: Operation, result: Array) -> Field:
    """Each result sees the places along one axis with a weight, as in linear resizing."""
    matrix, axis = np.asarray(operation.settings["matrix"], np.float32), operation.settings["axis"]
    scale, places = Fraction(*matrix.shape[::-1]), two_places(matrix)
    if axis not in operation.first.axes:
        return operation.keep(result, operation.first.axes)
    if places is None:
        raise UnknownError("which takes sums of more than two places")
    # Except at the border, weights must repeat after each whole step of cells and of results.
    cells, results = scale.numerator, scale.denominator
    inner = (places[:, 0] > 0) & (places[:, 1] < matrix.shape[1] - 1)
    both = inner[results:] & inner[:-results]
    if not both.any() or (matrix[results:, cells:] != matrix[:-results, :-cells])[both].any():
        raise UnknownError("which is resized by other weights at each place, as of align_corners")
    low = min(Fraction(int(at)) - scale * i for i, at in enumerate(places[:, 0]))
    high = max(Fraction(int(at)) - scale * i for i, at in enumerate(places[:, 1]))
    return _of_one_axis(operation, result, (scale, low, high), 0)


@rule(ops.space_to_depth)
def _coarser(operation: Operation, result: Array) -> Field:
    block = operation.settings["block"]
    return operation.windows(result, [(block, block, 0)] * 2)


@rule(ops.pad)
def _pad(operation: Operation, result: Array) -> Field:
    axes, reaches = operation.first
    mirrored = operation.settings.get("mode", "constant") != "constant"
    made = []
    for i, (axis, reach) in enumerate(zip(axes, reaches, strict=True)):
        before, behind = operation.settings["widths"][axis]
        low, high = (2 * behind, 2 * before) if mirrored else (0, 0)
        of = Fraction(1), -before - low, -before + high, result.shape[axis]
        made.append(operation.along(i, reach, of))
    return Field(axes, tuple(made))


@rule(ops.take)
def _take(operation: Operation, result: Array) -> Field:
    index, shape = operation.settings["index"], operation.arrays[0].shape
    index = index if isinstance(index, tuple) else (index,)
    if any(not isinstance(part, slice) for part in index):
        raise UnknownError("which takes single places of the image")
    parts = []
    for n, part in zip(shape[1:], (*index, *[slice(None)] * len(shape))[1:], strict=False):
        first, _, stride = part.indices(n)
        parts.append((1, stride, -first))
    if any(stride < 1 for _, stride, _ in parts):
        raise UnknownError("which turns the image round")
    return operation.windows(result, parts)


@rule(ops.linear, ops.normalize, ops.local_response_norm)
def _last(operation: Operation, result: Array) -> Field:
    operation.apart(-1)
    return operation.keep(result, operation.first.axes)


@rule(ops.softmax, ops.log_softmax)
def _softmax(operation: Operation, result: Array) -> Field:
    operation.apart(operation.settings.get("axis", -1))
    return operation.keep(result, operation.first.axes)


@rule(ops.layer_norm)
def _layer_norm(operation: Operation, result: Array) -> Field:
    operation.apart(*range(-operation.settings.get("axes", 1), 0))
    return operation.keep(result, operation.first.axes)


@rule(ops.concatenate)
def _concatenate(operation: Operation, result: Array) -> Field:
    axis = operation.settings.get("axis", -1) % result.ndim
    if not all(operation.fields) or axis in operation.fields[0].axes:  # type: ignore[union-attr]
        raise UnknownError("which joins the image with others")
    return _pointwise(operation, result)


@rule(ops.split)
def _split(operation: Operation, result: Array) -> Field:
    operation.apart(operation.settings.get("axis", -1))
    return operation.keep(result, operation.first.axes)


@rule(ops.transpose)
def _transpose(operation: Operation, result: Array) -> Field:
    order = [axis % result.ndim for axis in operation.settings["axes"]]
    return operation.keep(result, tuple(order.index(axis) for axis in operation.first.axes))


@rule(ops.reshape)
def _reshape(operation: Operation, result: Array) -> Field:
    """Axes of the image follow their cells, also several in one axis."""
    shape, (axes, reaches) = operation.arrays[0].shape, operation.first
    placed, lengths = [], [1] * result.ndim
    for i, (axis, reach) in enumerate(zip(axes, reaches, strict=True)):
        inside = [
            r.length for a, r in zip(axes[i + 1 :], reaches[i + 1 :], strict=True) if a == axis
        ]
        step = math.prod(shape[axis + 1 :]) * math.prod(inside)  # from one cell to the next
        behind = [math.prod(result.shape[j + 1 :]) for j in range(result.ndim)]
        fits = [
            j
            for j, n in enumerate(result.shape)
            if behind[j] <= step and step * reach.length <= behind[j] * n
        ]
        if not fits:
            raise UnknownError("which joins the image's axes with others")
        placed.append(fits[-1])
        lengths[fits[-1]] *= reach.length
    if any(result.shape[j] != lengths[j] for j in placed):
        raise UnknownError("which joins the image's axes with others")
    return operation.keep(result, tuple(placed))


def reach_of(
    predictor: Predictor, lengths: tuple[int, ...], channels: int, dtype: Any, exact: bool
) -> tuple[Reach, ...]:
    """Return the reach of a network's result along each axis of an image.

    The axes, with these ``lengths``, are the model's between samples and channels. Unless ``exact``
    the reach is the receptive field, which ignores rounding and is much smaller. An operation that
    sees more than a window raises a SettingsError.
    """
    image = np.zeros((predictor.few, *lengths, channels), np.result_type(dtype, np.float32))
    image = image.astype(np.float32)
    start = tuple(Reach(Fraction(1), Fraction(0), Fraction(0), 1, 1, n) for n in lengths)
    watch = _Watch(image, Field(tuple(range(1, image.ndim - 1)), start), exact)
    name = type(predictor.model).__name__
    with predictor.at_work(joined=False) as model, no_grad():
        try:
            with watched_operations(watch):
                result = as_arrays(call(model, image))
            if predictor.part is not None:
                result = result[predictor.part]
            return watch.field_of(result).reaches
        except UnknownError as error:
            raise SettingsError(
                f"predict, overlap: expected a network of whose results each sees a window of the "
                f"image, found {name}, {error}; give overlap=n, cells that tiles share with their "
                "neighbours: the result is then defined by the tiles"
            ) from None


class _Watch:
    """Follows an image through the operations of one pass."""

    def __init__(self, image: Array, field: Field, exact: bool) -> None:
        self.exact, self.lengths = exact, [reach.length for reach in field.reaches]
        # With a reference to the array, since an id may be used again for another one.
        self._fields = {id(image): (weakref.ref(image), field)}

    def __call__(
        self, function: Callable[..., Any], inputs: Any, settings: Any, results: Any
    ) -> None:
        """Note the reach of an operation's results."""
        arrays = [value.data if isinstance(value, Tensor) else value for value in inputs]
        fields = [self._known(array) for array in arrays]
        if not any(fields):
            return
        rule = RULES.get(function)
        if rule is None:
            raise UnknownError(f"with {function.__name__.strip('_')}, which may see all of it")
        operation = Operation(arrays, fields, settings, self.lengths, self.exact)
        for result in results:
            field = rule(operation, result.data)
            self._fields[id(result.data)] = weakref.ref(result.data), field

    def _known(self, array: Any) -> Field | None:
        reference, field = self._fields.get(id(array), (None, None))
        return field if reference is not None and reference() is array else None

    def field_of(self, result: Any) -> Field:
        """Return the field of a model's result."""
        field = self._known(result)
        if field is None or len(field.axes) != len(self.lengths):
            raise UnknownError("whose result is no image, or made without operations")
        if field.axes != tuple(range(1, result.ndim - 1)):
            raise UnknownError(f"whose result {result.shape} has other axes than its input")
        return field
