"""Partitions that are made where they are loaded, and counted while they are alive."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.data.recipe import Arrays, Recipe

_lock = threading.Lock()
_alive = _most = 0


def counted(value: Any) -> Any:
    """Return something that is counted from now on until nobody has it any more."""
    global _alive, _most
    with _lock:
        _alive += 1
        _most = max(_most, _alive)
    weakref.finalize(value, _gone)
    return value


def _gone() -> None:
    global _alive
    _alive -= 1  # not under the lock, which the thread may hold in which this comes


def most_alive() -> int:
    """Return how many of this process were alive at once since it was asked last."""
    global _most
    with _lock:
        most, _most = _most, _alive
        return most


@dataclass(frozen=True)
class Counted(Recipe):
    """Recipe of samples x (1,), y (1,) that are numbers from ``first`` on."""

    length: int
    first: int

    def __len__(self) -> int:
        return self.length

    def part(self, start: int, stop: int) -> Counted:
        return Counted(stop - start, self.first + start)

    def load(self) -> Arrays:
        x = np.arange(self.first, self.first + self.length, dtype=np.float32)[:, None]
        return counted(Arrays({"x": x, "y": x % 3}))
