"""Rounding to bfloat16."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.products.bfloat16 import from_bfloat16, to_bfloat16


def test_every_bfloat16_stays_what_it_is():
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = from_bfloat16(bits)
    finite = ~np.isnan(numbers)
    np.testing.assert_array_equal(to_bfloat16(numbers)[finite], bits[finite])
    assert np.isnan(from_bfloat16(to_bfloat16(numbers[~finite]))).all()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(0, 1))
def test_others_go_to_the_nearest_and_ties_to_the_even_one(number, sign):
    x = np.float32(-number if sign else number)
    low = np.array([x]).view(np.uint32) & np.uint32(0xFFFF0000)
    neighbours = np.concatenate([low, low + np.uint32(0x10000)]).view(np.float32).astype(np.float64)
    away = np.abs(neighbours - np.float64(x))
    rounded = to_bfloat16(np.array([x]))[0]
    if not np.isfinite(neighbours).all():
        return
    chosen = int(away[1] < away[0]) if away[0] != away[1] else int(low[0] >> 16) & 1
    assert float(from_bfloat16(np.array([rounded]))[0]) == neighbours[chosen]


def test_too_large_numbers_become_infinite_and_no_nan_gets_lost():
    x = np.array([3.4e38, -3.4e38, np.inf, np.nan], np.float32)
    quiet = np.array([0x7F800001], np.uint32).view(np.float32)  # its upper bits are infinity's
    rounded = from_bfloat16(to_bfloat16(np.concatenate([x, quiet])))
    np.testing.assert_array_equal(rounded, [np.inf, -np.inf, np.inf, np.nan, np.nan])


def test_any_layout():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(from_bfloat16(to_bfloat16(x.T[::2])), x.T[::2])
    assert to_bfloat16(np.empty((0, 3), np.float32)).shape == (0, 3)
