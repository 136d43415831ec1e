"""Products in bfloat16: roundings, all three products of a layer, any shape and any threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.products import bfloat16
from daskdl.kernels.runtime.threads import thread_budget

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 1.00390625, 1.01171875, 3.4e38, -3.4e38, np.inf, -np.inf, np.nan,
     1e-39, -1e-39, 1.1754944e-38, 1 / 3], np.float32,
)  # fmt: skip


def rounded(x):
    """Round to the nearest of 8 bits, ties to even, through float64."""
    x = np.asarray(x, np.float32)
    mantissa, exponent = np.frexp(x.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        y = np.ldexp(np.rint(mantissa * 256) / 256, exponent).astype(np.float32)
        y = np.where(np.abs(y) > 3.39e38, np.copysign(np.inf, y), y)
    return np.where(np.abs(x) < np.float32(2**-126), np.copysign(np.float32(0), x), y)


def numbers(words):
    return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)


def test_rounds_to_the_nearest_even():
    rng = np.random.default_rng(0)
    x = np.concatenate([SPECIAL, rng.normal(size=401).astype(np.float32)])
    found = numbers(bfloat16.along(x[None]).view(np.uint16)[0])
    np.testing.assert_array_equal(found[: x.size], rounded(x))
    assert (np.signbit(found[: x.size]) == np.signbit(x))[~np.isnan(x)].all()
    assert not found[x.size :].any()  # an odd row is filled up


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize(("inside", "outside"), [(16, 16), (33, 70), (600, 19)])
def test_products_of_a_layer(rows, inside, outside):
    rng = np.random.default_rng(rows)
    x, w, dy = (
        rng.normal(size=s).astype(np.float32)
        for s in ((rows, inside), (outside, inside), (rows, outside))
    )
    pairs = bfloat16.along(x)
    y = bfloat16.product(pairs, bfloat16.columns_of(w), outside)
    dx = bfloat16.product(bfloat16.along(dy), bfloat16.rows_of(w), inside)
    across = bfloat16.across(x)
    np.testing.assert_array_equal(bfloat16.across_pairs(pairs, inside), across)
    dw = bfloat16.outer_product(bfloat16.across(dy), across)
    for found, left, right in ((y, x, w.T), (dx, dy, w), (dw, dy.T, x)):
        expected = rounded(left).astype(np.float64) @ rounded(right).astype(np.float64)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.slow
def test_same_bits_for_any_threads():
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((3000, 130), (90, 130)))
    results = []
    for n in (1, 3):
        with thread_budget(n):
            pairs = bfloat16.along(x)
            y = bfloat16.product(pairs, bfloat16.columns_of(w), 90)
            across = bfloat16.across_pairs(pairs, 130)
        results.append((y, across))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_nothing_and_no_summands():
    for rows, inside in ((0, 4), (3, 0)):
        x = np.ones((rows, inside), np.float32)
        w = np.ones((5, inside), np.float32)
        y = bfloat16.product(bfloat16.along(x), bfloat16.columns_of(w), 5)
        assert y.shape == (rows, 5)
        assert not y.any()
