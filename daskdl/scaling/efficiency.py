"""Efficiency: which part of more workers' time is well spent."""

from __future__ import annotations


def weak(base: float, seconds: float) -> float:
    """Return the weak efficiency: each worker has as many samples as in the base.

    Parameters
    ----------
    base, seconds : float
        Of an iteration on the fewest workers, and on these.
    """
    return base / seconds


def strong(base_workers: int, base: float, workers: int, seconds: float) -> float:
    """Return the strong efficiency: all workers together have as many samples as in the base.

    Parameters
    ----------
    base_workers, base : int, float
        The fewest workers, and the seconds of an iteration on them.
    workers, seconds : int, float
        These workers, and the seconds of an iteration on them.
    """
    return base_workers * base / (workers * seconds)


def counts(first: int, last: int) -> list[int]:
    """Return numbers of workers from ``first`` to ``last``, each twice the one before."""
    found = []
    while first < last:
        found.append(first)
        first *= 2
    return [*found, last]
