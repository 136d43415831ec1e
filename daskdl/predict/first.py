"""First: the result of the sample that is tried before a graph is made, for that one's task."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.compat.numba_compiler import processor
from daskdl.nn.inputs import parts_of

#: Bytes of the largest result that is put into a graph.
LARGEST = 100_000


@dataclass(frozen=True)
class First:
    """A sample's result, and what tells the sample by.

    Parameters
    ----------
    digest : str
        Of the inputs, and of the kind of processor: another kind's results may differ in last bits.
    result : array (1, ...)
    """

    digest: str
    result: NDArray[Any]

    def is_of(self, one: Any) -> bool:
        """Return whether this is the result of these inputs (1, ...), as this machine has it."""
        return self.digest == _digest(one)


def first(one: Any, result: NDArray[Any]) -> First | None:
    """Return the result of inputs (1, ...) for a graph; None where it is too large for one."""
    return First(_digest(one), result) if result.nbytes <= LARGEST else None


def _digest(one: Any) -> str:
    found = hashlib.blake2b(processor().encode(), digest_size=16)
    for part in map(np.asarray, parts_of(one)):
        found.update(f"{part.dtype} {part.shape} ".encode())
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()
