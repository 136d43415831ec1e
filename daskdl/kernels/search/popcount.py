"""The number of set bits of a word, by the processor's own instruction, in vectors if it can."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def popcount(typing: Any, word: Any) -> Any:
    """Return how many bits of a uint64 are set, int64."""
    if word != types.uint64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
