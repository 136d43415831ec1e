"""Exact sums of floats as integers: any order of additions, rounded once at the end."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: A float64 is an integer of 53 bits times a power of two; this is the lowest exponent.
LOWEST = -1126

#: Words of 32 bits that hold the sum; the last ones hold carries.
WORDS = 70

#: Number of floats processed together.
BLOCK = 1 << 18

_MASK = np.int64(0xFFFFFFFF)


def exact_sum(values: ArrayLike) -> NDArray[np.int64]:
    """Return the exact sum of floats, as an integer in words of 32 bits.

    Up to 2**30 such arrays, int64 (WORDS + 3,), may be added in any order. The last three elements
    count NaN, infinity and minus infinity.
    """
    vector = np.asarray(values, np.float64).reshape(-1)
    total = np.zeros(WORDS + 3, np.int64)
    for start in range(0, vector.size, BLOCK):
        part = vector[start : start + BLOCK]
        finite = np.isfinite(part)
        if not finite.all():
            total[WORDS] += np.isnan(part).sum()
            total[WORDS + 1] += (part == np.inf).sum()
            total[WORDS + 2] += (part == -np.inf).sum()
            part = part[finite]
        _add(total, part)
        _carry(total)
    return total


def _add(total: NDArray[np.int64], part: NDArray[np.float64]) -> None:
    fractions, exponents = np.frexp(part)
    whole = np.ldexp(fractions, 53).astype(np.int64)
    places = exponents.astype(np.int64) - 53 - LOWEST
    words, shifts = places >> 5, places & 31
    sign, whole = np.sign(whole), np.abs(whole)
    low, high = (whole & _MASK) << shifts, (whole >> 32) << shifts  # less than 2**63
    np.add.at(total, words, sign * (low & _MASK))
    np.add.at(total, words + 1, sign * ((low >> 32) + (high & _MASK)))
    np.add.at(total, words + 2, sign * (high >> 32))


def _carry(total: NDArray[np.int64]) -> None:
    """Carry over, so that all words but the last are below 2**32; the last has the sign."""
    for word in range(WORDS - 1):
        over = total[word] >> 32
        total[word] -= over << 32
        total[word + 1] += over


def mean_of(total: NDArray[np.int64], n: int) -> float:
    """Return an exact sum over ``n``, correctly rounded; NaN for n = 0.

    If there are infinities of one sign or NaN among the floats, so is the mean.
    """
    nan, above, below = (int(k) for k in total[WORDS:])
    if not n or nan or (above and below):
        return math.nan
    if above or below:
        return math.inf if above else -math.inf
    whole = sum(int(word) << (32 * k) for k, word in enumerate(total[:WORDS]))
    try:
        return whole / (n << -LOWEST)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
