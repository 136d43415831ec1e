"""Dropout that draws the same numbers wherever and however often it is run."""

from __future__ import annotations

from daskdl.errors import SettingsError
from daskdl.kernels.vectors import dropout as kernel
from daskdl.ops.activations import check_float
from daskdl.tensor import Array, op

__all__ = ["dropout"]


@op
def dropout(x: Array, *, rate: float, seed: int, counter: int = 0):
    """Set about ``rate`` of ``x`` to zero and divide the others by ``1 - rate``.

    N. Srivastava et al., JMLR 15 (2014). Which ones is a function of ``seed``, ``counter`` and the
    position in ``x`` alone, whatever the threads; ``counter`` tells calls of one seed apart.

    Examples
    --------
    >>> dropped = ops.dropout(np.ones(1000, np.float32), rate=0.5, seed=0).data
    >>> sorted(set(dropped.tolist()))
    [0.0, 2.0]
    """
    check_float("dropout", x)
    check_rate("dropout", rate)
    if rate == 0:
        return x, lambda dy: (dy,)
    y = kernel.dropout(x, rate, seed, counter)
    return y, lambda dy: (kernel.dropout(dy, rate, seed, counter),)


def check_rate(where: str, rate: float) -> None:
    """Raise a SettingsError unless a rate is a part of one."""
    if not 0 <= rate <= 1:
        raise SettingsError(
            f"{where}: expected 0 <= rate <= 1, found {rate!r}; rate is the part that is dropped"
        )
