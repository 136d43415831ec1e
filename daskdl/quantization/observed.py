"""Statistics of a model's layers, and the ranges of their inputs that follow.

The statistics are predictions of models that watch another model. So they work for samples of any
kind, in this process and on a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.int8.scale import HIGHEST
from daskdl.nn import Module
from daskdl.nn.core.arguments import call
from daskdl.nn.core.state import arrays, watched
from daskdl.quantization.graphs import graphs_of

Array = NDArray[Any]

#: Cells of a histogram.
CELLS = 2048

#: Ways to choose a range: all observed numbers; all but the rarest; the range with the least mean
#: square error of rounding and clipping; a range for each row.
WAYS = ("extremes", "percentile", "error", "dynamic")
#: Share of numbers outside the range of "percentile", at both ends together.
OUTSIDE = 1e-4
#: Shares of the whole range that "error" tries.
PARTS = np.geomspace(0.01, 1.0, 121)


class Extremes(Module):
    """A model that returns the smallest and largest input of each layer, (N, layers, 2).

    They are of the whole batch, repeated for each sample; NaN for a layer that is not called.
    """

    def __init__(self, model: Module, names: Sequence[str]) -> None:
        self.model, self.names = model, names

    def forward(self, *inputs: Any) -> Array:
        """Return the extremes of the layers' inputs."""
        n = len(next(arrays(inputs)))
        result = np.full((len(self.names), 2), np.nan, np.float32)

        def see(i: int, x: Array) -> None:
            extremes = np.array([x.min(), x.max()]) if x.size else np.full(2, np.nan)
            result[i] = np.fmin(result[i, 0], extremes[0]), np.fmax(result[i, 1], extremes[1])

        _seen(self, inputs, see)
        return np.broadcast_to(result, (n, *result.shape))


class Histograms(Module):
    """A model that returns the histogram of each layer's inputs, (N, layers, CELLS).

    The first sample has the counts of the whole batch, the others zeros. Each layer's range (low,
    high) is split into :data:`CELLS`.
    """

    def __init__(
        self, model: Module, names: Sequence[str], ranges: Sequence[tuple[float, float]]
    ) -> None:
        self.model, self.names, self.ranges = model, names, ranges

    def forward(self, *inputs: Any) -> Array:
        """Return the counts."""
        counts = np.zeros((len(next(arrays(inputs))), len(self.names), CELLS), np.float32)

        def see(i: int, x: Array) -> None:
            counts[0, i] += np.histogram(x, CELLS, self.ranges[i])[0]

        _seen(self, inputs, see)
        return counts


class Errors(Module):
    """A model that returns the change of a model's results by the rounding of each layer.

    The result is (N, layers + 1) sums of squares for each sample: of the change by each layer, and
    of the original result minus its mean. ``others`` are copies of the model, each with one layer
    rounded.
    """

    def __init__(self, model: Module, others: Sequence[Module]) -> None:
        self.model, self.others = model, others

    def forward(self, *inputs: Any) -> Array:
        """Return the sums of squares."""
        results = [np.array(part) for part in arrays(call(self.model, inputs))]
        n = len(next(arrays(inputs)))
        sums = np.zeros((n, len(self.others) + 1))
        for i, other in enumerate(self.others):
            for y, changed in zip(results, arrays(call(other, inputs)), strict=True):
                sums[:, i] += _squares(changed.astype(np.float64) - y, n)
        for y in results:
            sums[:, -1] += _squares(y - y.mean(0, dtype=np.float64) * (n > 1), n)
        return sums


def _squares(x: Array, n: int) -> Array:
    return np.square(x.reshape(n, -1), dtype=np.float64).sum(1)


def _seen(observed: Any, inputs: Any, see: Any) -> None:
    """Run the model, and call ``see`` with the number and the input of each layer call."""
    numbers = {name: i for i, name in enumerate(observed.names)}

    def see_named(name: str, inputs_of_it: Any) -> None:
        if name in numbers:
            see(numbers[name], next(arrays(inputs_of_it)))

    def watch(name: str, module: Module, inputs_of_it: Any, result: Any) -> None:
        see_named(name, inputs_of_it)

    graphs = graphs_of(observed.model)
    for before, graph in graphs:
        vars(graph)["watch"] = lambda node, x, before=before: see_named(before + node, x)
    try:
        with watched(observed.model, watch):
            call(observed.model, inputs if len(inputs) > 1 else inputs[0])
    finally:
        for _, graph in graphs:
            del vars(graph)["watch"]


def percentile(counts: Array, low: float, high: float) -> tuple[float, float]:
    """Return the range without the rarest numbers at both ends, from a histogram."""
    edges = np.linspace(low, high, len(counts) + 1)
    below = np.cumsum(counts) / max(1.0, counts.sum())
    first = int(np.searchsorted(below, OUTSIDE / 2, side="right"))
    last = int(np.searchsorted(below, 1 - OUTSIDE / 2, side="left"))
    return float(edges[min(first, last)]), float(edges[min(last + 1, len(counts))])


def least_error(counts: Array, low: float, high: float) -> tuple[float, float]:
    """Return the range, shrunk by one factor at both ends, with the least mean square error.

    Rounding has a mean square error of step ** 2 / 12, clipping the square of the distance.
    """
    edges = np.linspace(low, high, len(counts) + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    errors = []
    for part in PARTS:
        bottom, top = min(low, 0.0) * part, max(high, 0.0) * part
        cut = middles - np.clip(middles, bottom, top)
        step = (top - bottom) / HIGHEST
        errors.append((counts * np.where(cut == 0, step**2 / 12, cut**2)).sum())
    best = PARTS[int(np.argmin(errors))]
    return min(low, 0.0) * best, max(high, 0.0) * best
