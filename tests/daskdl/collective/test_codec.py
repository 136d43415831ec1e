from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.codec import add_rounded, decode, encode, encoded_size, round_in_place

Vector = Any


def nearest(x: Vector) -> Vector:
    """Return the nearest bfloat16 by arithmetic: 8 bits of mantissa, ties to even."""
    _, exponent = np.frexp(x.astype(np.float64))
    exponent = np.maximum(exponent, -125)  # below, numbers are further apart
    scale = np.ldexp(1.0, 8 - exponent)
    with np.errstate(over="ignore"):
        return (np.rint(x.astype(np.float64) * scale) / scale).astype(np.float32)


def numbers(n: int = 4096) -> Vector:
    rng = np.random.default_rng(n)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-44, 38, n)
    x = x.astype(np.float32)
    x[:9] = [0, -0.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3.4e38, np.inf, -np.inf, 1e-45]
    return x


def test_the_first_numbers_are_rounded_and_the_others_kept() -> None:
    x = numbers()
    for rounded in (0, 1, 4000, x.size, x.size + 7, -3):
        words, found = encode(x, rounded), np.zeros_like(x)
        assert words.size == encoded_size(x.size, rounded)
        decode(words, rounded, found)
        k = min(max(rounded, 0), x.size)
        np.testing.assert_array_equal(found[:k], nearest(x[:k]))
        np.testing.assert_array_equal(found[k:], x[k:])
        round_in_place(x_copy := x.copy(), rounded)
        np.testing.assert_array_equal(x_copy, found)


@given(st.floats(width=32, allow_nan=False))
def test_what_is_rounded_stays(number: float) -> None:
    once = np.array([number], np.float32)
    round_in_place(once, 1)
    twice = once.copy()
    round_in_place(twice, 1)
    assert once.tobytes() == twice.tobytes()


def test_nan_stays_nan() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32)
    x = bits.view(np.float32)
    found = np.zeros(3, np.float32)
    decode(encode(x, 3), 3, found)
    assert np.isnan(found).all()
    assert np.isnan(add_rounded(x.copy(), np.ones(3, np.float32), 3)).all()


def test_operands_are_rounded_and_the_sum_is_not() -> None:
    a, b = numbers(), numbers()[::-1].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        want = nearest(a) + nearest(b)
        want[4000:] = a[4000:] + b[4000:]
        found = add_rounded(a.copy(), b, 4000)
    np.testing.assert_array_equal(found, want)
