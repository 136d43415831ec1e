"""A metric's value does not depend on how samples are cut into batches nor on how these merge."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from daskdl.metrics import Metric


def check_cuts(
    metric: Metric, prediction: Any, target: Any, data: st.DataObject, weight: Any = None
) -> float:
    """Check that drawn cuts, orders and merges of batches give the same value; return it."""
    n = len(target)
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=5), label="cuts"))
    bounds = list(zip([0, *cuts], [*cuts, n], strict=True))
    batches = data.draw(st.permutations(bounds), label="order")

    def statistics(i: int, j: int) -> dict[str, Any]:
        more = () if weight is None else (weight[i:j],)
        return metric.statistics(prediction[i:j], target[i:j], *more)

    merged = [statistics(i, j) for i, j in batches]
    together = metric.value(metric.merge(*merged))
    while len(merged) > 1:
        at = data.draw(st.integers(0, len(merged) - 2), label="merge")
        copies = {name: array.copy() for name, array in merged[at].items()}
        both = metric.merge(merged[at], merged[at + 1])
        for name, array in copies.items():
            np.testing.assert_array_equal(merged[at][name], array)
        merged[at : at + 2] = [both]
    value, whole = metric.value(merged[0]), metric.value(statistics(0, n))
    np.testing.assert_equal(together, value)
    assert isinstance(value, float)
    assert value == whole or (np.isnan(value) and np.isnan(whole)), (value, whole)
    return whole
