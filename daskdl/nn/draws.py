"""Seeds of the random numbers of layers, such as dropout's: of a forward pass and of its calls."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["drawing"]

_pass = threading.local()


@contextmanager
def drawing(seed: int | Callable[[], int]) -> Iterator[None]:
    """Make all that layers of this thread draw inside a function of ``seed`` and their order.

    A callable gives the seed when the first layer draws; most networks have none that does.

    Examples
    --------
    >>> import numpy as np
    >>> from daskdl.nn import Dropout
    >>> layer, x = Dropout(0.5), np.ones((1, 8), np.float32)
    >>> with drawing(1):
    ...     first = layer(x).data
    >>> with drawing(1):
    ...     second = layer(x).data
    >>> bool((first == second).all())
    True
    """
    before = getattr(_pass, "draws", None)
    _pass.draws = [seed, 0]
    try:
        yield
    finally:
        _pass.draws = before


def next_draw() -> tuple[int, int]:
    """Return (seed, counter) of the next draw; outside of :func:`drawing` the seed is the system's.

    No two calls under one seed have the same counter.
    """
    draws = getattr(_pass, "draws", None)
    if draws is None:
        draws = _pass.draws = [secrets.randbits(64), 0]
    seed, counter = draws
    if callable(seed):
        seed = draws[0] = seed()
    draws[1] += 1
    return seed, counter


def generator_of_draw() -> np.random.Generator:
    """Return a Generator for the next draw."""
    return np.random.default_rng(next_draw())
