"""Inverted residuals in inference: expansion, depthwise convolution and projection row by row.

The expanded image is several times as large as input and result, and leaves the caches between two
kernels. Here a tile of a few rows goes through all three convolutions before the next one begins,
so that the expanded tile stays in L2. Rows that the next tile sees, too, are kept. Sums have the
order, and the bits, of the three convolutions' kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import depthwise
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.products import pointwise
from daskdl.kernels.products.finish import Finish, Prepared
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import scratch
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.runtime.threads import threads

Array = NDArray[np.floating]
#: Least and greatest number that a result is limited to.
Limits = tuple[float, float]

#: Bytes of a tile between the convolutions, in a core's L2.
ROOM = 384 << 10
#: Bytes of an expanded batch that stays in L2 anyway.
STAYS = 256 << 10
#: Tiles of a thread below which it matters that another thread has one more.
FEW = 4
#: Most bytes of weights, which are read again for each tile.
WEIGHTS = 512 << 10


class Bottleneck(Prepared):
    """A depthwise and a pointwise convolution, and maybe a pointwise one before, as one kernel.

    The limits apply to the intermediate results.
    """

    def __init__(
        self,
        expand: Convolution | None,
        middle: Convolution,
        project: Convolution,
        expand_limits: Limits,
        middle_limits: Limits,
    ) -> None:
        self.expand, self.middle, self.project = expand, middle, project
        self.limits, self.bias = (expand_limits, middle_limits), project.bias

    def shape_of(self, x: Array) -> tuple[int, ...]:
        """Return the shape of the projection for x (N, H, W, in): (N, rows, columns, out)."""
        return len(x), *self.middle.geometry.size(*x.shape[1:3]), self.project.filters

    def finishing(self, y: Array, x: Array, finish: Finish) -> Callable[[], object]:
        """Return a function without arguments that computes and finishes ``y``."""
        geometry, channels = self.middle.geometry, self.middle.filters
        tile = _rows_of(geometry, x.shape, y.shape, channels, x.itemsize)
        tiles = -(-y.shape[1] // tile)
        offsets = geometry.offsets()
        plan = np.array([*geometry.stride, tile, tiles, offsets[:, 0].min(), offsets[:, 0].max()])
        room = scratch("bottleneck", (threads(), ROOM // x.itemsize), x.dtype)
        first = self.middle if self.expand is None else self.expand
        panels = np.empty((0, 0, 0), x.dtype) if self.expand is None else self.expand.packed
        zeros = np.zeros(channels, x.dtype)
        return work_over_range(
            _tiles, len(x) * tiles, 1, x, panels, _finish_of(y, first, self.limits[0]), offsets,
            self.middle.packed, _finish_of(y, self.middle, self.limits[1]), self.project.packed,
            y, finish, plan, zeros, room,
        )  # fmt: skip


def serves(
    expand: Convolution | None, middle: Convolution, project: Convolution, shape: tuple[int, ...]
) -> bool:
    """Return whether a :class:`Bottleneck` computes a batch (N, H, W, in) faster."""
    pointwise_ones = [project] if expand is None else [expand, project]
    if middle.way != "depthwise" or any(c.way != "pointwise" for c in pointwise_ones):
        return False
    itemsize, geometry, channels = middle.bias.itemsize, middle.geometry, middle.filters
    if sum(c.packed.nbytes for c in pointwise_ones) > WEIGHTS:
        return False
    if shape[0] * shape[1] * shape[2] * channels * itemsize <= STAYS:
        return False
    rows, columns = geometry.size(*shape[1:3])
    return _rows_of(geometry, shape, (shape[0], rows, columns), channels, itemsize) > 0


def _rows_of(
    geometry: Geometry, shape: Sequence[int], results: Sequence[int], channels: int, itemsize: int
) -> int:
    """Return the number of rows of results in a tile; 0 if not even one fits."""
    reach, step = geometry.reach[0], geometry.stride[0]
    above, below = shape[2] * channels * itemsize, results[2] * channels * itemsize
    # A tile takes above * ((rows - 1) * step + reach) + below * rows.
    most = (ROOM - above * (reach - step)) // (above * step + below)
    if most < 1 or not results[1]:
        return 0
    tiles = -(-results[1] // most)
    if shape[0] * tiles < FEW * threads():  # equally many for each thread
        tiles = -(-shape[0] * tiles // threads()) * threads() // shape[0]
    return -(-results[1] // tiles)


def _finish_of(like: Array, convolution: Convolution, limits: Limits) -> tuple[Array, Array]:
    return convolution.bias, np.array(limits, like.dtype)


@jit
def _tiles(
    x, panels, expand_finish, offsets, taps, middle_finish, last_panels, y, finish, plan, zeros,
    room, which, start, stop,
):  # fmt: skip
    """Compute the tiles ``start`` to ``stop`` of all images."""
    step, across, tile, tiles, top, bottom = plan
    height, width, channels = x.shape[1], x.shape[2], taps.shape[1]
    rows, columns, filters = y.shape[1:]
    results, residual = y.reshape(-1, filters), finish[1].reshape(-1, filters)
    flat = x.reshape(-1, x.shape[3])
    line, expands = width * channels, panels.shape[0] > 0
    workspace = room[which]
    middle_room = workspace[workspace.size - tile * columns * channels :]
    whole, places = np.array([step, across, 0, 0, 1, 1, tile, columns]), offsets.copy()
    kept_from, kept_to = 0, 0  # rows of the image in the room
    for index in range(start, stop):
        n, t = divmod(index, tiles)
        first, last = t * tile, min((t + 1) * tile, rows)
        low, high = 0, height
        if expands:
            low = min(max(0, first * step + top), height)
            high = max(low, min(height, (last - 1) * step + bottom + 1))
            done = low
            if index > start and t > 0 and kept_from <= low < kept_to:
                done = min(kept_to, high)
                _move(workspace, (low - kept_from) * line, (done - low) * line)
            expanded = workspace[: (high - low) * line].reshape(-1, channels)
            target = expanded[(done - low) * width :]
            source = flat[(n * height + done) * width : (n * height + high) * width]
            pointwise.product(
                source, 0, panels, target, (expand_finish[0], target, expand_finish[1]), 0,
                source.shape[0], 0, panels.shape[0], source.shape[0],
            )  # fmt: skip
            kept_from, kept_to = low, high
            image = expanded.reshape(1, high - low, width, channels)
        else:
            image = x[n : n + 1]
        for tap in range(offsets.shape[0]):
            places[tap, 0] = offsets[tap, 0] + first * step - low
        count = (last - first) * columns
        middle = middle_room[: count * channels].reshape(1, last - first, columns, channels)
        whole[6] = last - first
        depthwise._sums(
            image, places, taps, middle, whole, zeros, False,
            (middle_finish[0], middle, middle_finish[1]), 0, 0, last - first,
        )  # fmt: skip
        begin = (n * rows + first) * columns
        part = results[begin : begin + count]
        pointwise.product(
            middle.reshape(-1, channels), 0, last_panels, part,
            (finish[0], residual[begin : begin + count], finish[2]), 0, count, 0,
            last_panels.shape[0], count,
        )  # fmt: skip


@jit
def _move(room, source, count):
    """Move numbers to the beginning of the room; source and target may overlap."""
    for i in range(count):
        room[i] = room[source + i]
