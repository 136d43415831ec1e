"""Elements written to places of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.tensor import Array, op

__all__ = ["scatter"]

_REDUCTIONS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


@op
def scatter(x: Array, updates: Array, *, index: tuple[Any, ...], reduction: str = "none"):
    """Return x with ``x[index]`` replaced by updates, or reduced with them.

    Parameters
    ----------
    x : array
    updates : array
        In the shape of ``x[index]``.
    index : tuple
        As numpy indexes. Where a place comes twice without a reduction the last one is written.
    reduction : "none", "add", "mul", "max" or "min"
        ``max`` and ``min`` share the gradient among equals; ``mul`` takes it where nothing is 0.

    Examples
    --------
    >>> ops.scatter(np.zeros(4), np.array([5.0, 7.0]), index=(np.array([1, 3]),)).data
    array([0., 5., 0., 7.])
    """
    if reduction not in ("none", *_REDUCTIONS):
        raise SettingsError(
            f"scatter: expected reduction none, {', '.join(_REDUCTIONS)}, found {reduction!r}"
        )
    y = np.array(x)
    if reduction == "none":
        y[index] = updates
    else:
        _REDUCTIONS[reduction].at(y, index, updates)

    def backward(dy: Array):
        if reduction == "add":
            return dy, dy[index]
        if reduction == "none":
            dx = dy.copy()
            dx[index] = 0
            return dx, dy[index]
        if reduction == "mul":
            with np.errstate(divide="ignore", invalid="ignore"):
                return dy * y / x, dy[index] * y[index] / updates
        holders = (x == y).astype(dy.dtype)
        winners = (updates == y[index]).astype(dy.dtype)
        count = holders.copy()
        np.add.at(count, index, winners)
        share = dy / count
        return share * holders, share[index] * winners

    return y, backward
