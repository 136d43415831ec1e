"""Statistics of a model's layers, as predictions of models that watch it.

So samples of any kind serve, here and on a cluster. And the ranges that follow from them: the
numbers that a layer's bytes stand for.
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

#: Ways to choose a range: all that was seen; what is left without the rarest; what has the least
#: mean square of roundings and of what is cut off; each row's own.
WAYS = ("extremes", "percentile", "error", "dynamic")
#: Share of the numbers that a percentile leaves out, at both ends together.
OUTSIDE = 1e-4
#: Parts of the whole range that are tried.
PARTS = np.geomspace(0.01, 1.0, 121)


class Extremes(Module):
    """A model whose result is the least and the greatest input of each layer, (N, layers, 2).

    Of a batch, for each of its samples. A layer that is not called has NaN.
    """

    def __init__(self, model: Module, names: Sequence[str]) -> None:
        self.model, self.names = model, names

    def forward(self, *inputs: Any) -> Array:
        """Return the extremes of the layers' inputs."""
        n = len(next(arrays(inputs)))
        result = np.full((len(self.names), 2), np.nan, np.float32)

        def see(i: int, x: Array) -> None:
            ends = np.array([x.min(), x.max()]) if x.size else np.full(2, np.nan)
            result[i] = np.fmin(result[i, 0], ends[0]), np.fmax(result[i, 1], ends[1])

        _seen(self, inputs, see)
        return np.broadcast_to(result, (n, *result.shape))


class Histograms(Module):
    """A model whose result is how many inputs of each layer lie where, (N, layers, CELLS).

    The counts of a batch stand with its first sample; each layer's range (low, high) is cut into
    :data:`CELLS`.
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
    """A model whose result is how far layers that are rounded, each alone, change its own.

    (N, layers + 1) sums of squares of a sample: of the change by each layer, and of the result. The
    others are the model with one layer rounded each.
    """

    def __init__(self, model: Module, others: Sequence[Module]) -> None:
        self.model, self.others = model, others

    def forward(self, *inputs: Any) -> Array:
        """Return the sums."""
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
    """Call ``see`` with the number of each layer and its input, as the model calls it."""
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
    """Return the range without the rarest numbers at both ends, by the counts of its cells."""
    edges = np.linspace(low, high, len(counts) + 1)
    below = np.cumsum(counts) / max(1.0, counts.sum())
    first = int(np.searchsorted(below, OUTSIDE / 2, side="right"))
    last = int(np.searchsorted(below, 1 - OUTSIDE / 2, side="left"))
    return float(edges[min(first, last)]), float(edges[min(last + 1, len(counts))])


def least_error(counts: Array, low: float, high: float) -> tuple[float, float]:
    """Return the part of the range, of the same share at both ends, that has the least error.

    A rounding's mean square is a twelfth of the step's; what is cut off has its distance's.
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
