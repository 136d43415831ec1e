"""Products in bfloat16: roundings, all three products of a layer, any shape and any threads."""

from __future__ import annotations

import llvmlite.binding
import numpy as np
import pytest
from numba import njit

from daskdl.kernels.products import bfloat16
from daskdl.kernels.products.bfloat16_pair import ARITHMETICS
from daskdl.kernels.products.microkernel import COLUMNS, ROWS, SEGMENT, address, keep, product_of
from tests.daskdl.gradients import same_bits

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
    result = numbers(bfloat16.along(x[None]).view(np.uint16)[0])
    np.testing.assert_array_equal(result[: x.size], rounded(x))
    assert (np.signbit(result[: x.size]) == np.signbit(x))[~np.isnan(x)].all()
    assert not result[x.size :].any()  # an odd row is filled up


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
    for result, left, right in ((y, x, w.T), (dx, dy, w), (dw, dy.T, x)):
        expected = rounded(left).astype(np.float64) @ rounded(right).astype(np.float64)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.slow
def test_same_bits_for_any_threads():
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((3000, 130), (90, 130)))

    def products():
        pairs = bfloat16.along(x)
        y = bfloat16.product(pairs, bfloat16.columns_of(w), 90)
        return y, bfloat16.across_pairs(pairs, 130)

    same_bits(products, 1, 3)


def test_nothing_and_no_summands():
    for rows, inside in ((0, 4), (3, 0)):
        x = np.ones((rows, inside), np.float32)
        w = np.ones((5, inside), np.float32)
        y = bfloat16.product(bfloat16.along(x), bfloat16.columns_of(w), 5)
        assert y.shape == (rows, 5)
        assert not y.any()


HAS = llvmlite.binding.get_host_cpu_features().get("avx512bf16", False)
#: Ranges of the exponents of A and of B, to base 2.
RANGES = {
    "ordinary": ((-2, 2), (-2, 2)),
    "tiny": ((-80, -50), (-80, -50)),
    "denormal": ((-132, -120), (-4, 4)),
    "huge": ((55, 70), (55, 70)),
}


def block_of(way):
    """Return a function that adds to c (ROWS, COLUMNS) the pairs a (ROWS, K) @ b (K, COLUMNS)."""
    multiply = product_of(ROWS, way=way)

    @njit
    def block(a, b, c):
        table, targets = np.empty(SEGMENT, np.int64), np.empty(ROWS, np.int64)
        for i in range(ROWS):
            table[i] = address(a) + i * a.shape[1] * 4
            targets[i] = address(c) + i * COLUMNS * 4
        table[ROWS], table[ROWS + 1] = 0, a.shape[1]
        multiply(a, address(table), 1, 4, address(b), COLUMNS * 4, address(targets), 0, False)
        keep(table)
        keep(targets)

    return block


def flushed(x):
    return np.where(np.abs(x) < np.float32(2**-126), np.copysign(np.float32(0), x), x)


def as_the_manual_says(a, b):
    """Sum up pairs (ROWS, K) and (K, COLUMNS), each product exact and each sum rounded once."""
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        for half in (0xFFFF0000, 0x0000FFFF):
            shift = np.uint32(0 if half == 0xFFFF0000 else 16)
            left, right = (
                flushed(((x & np.uint32(half)) << shift).view(np.float32))
                for x in (a[:, k, None], b[None, k])
            )
            exact = left.astype(np.longdouble) * right + total
            total = flushed(exact.astype(np.float32))
    return total


def drawn(rng, shape, exponents):
    scale = 2.0 ** rng.integers(*exponents, (*shape, 2))
    words = (rng.normal(size=(*shape, 2)) * scale).astype(np.float32).view(np.uint32)
    return words[..., 0] >> np.uint32(16) | (words[..., 1] & np.uint32(0xFFFF0000))


@pytest.mark.parametrize("way", ARITHMETICS)
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no 80-bit arithmetic to compare")
def test_products_have_the_bits_of_the_manual(way):
    if way == "instruction" and not HAS:
        pytest.skip("a processor without AVX512_BF16")
    block, rng = block_of(way), np.random.default_rng(0)
    with np.errstate(all="ignore"):
        for name, exponents in RANGES.items():
            a = drawn(rng, (ROWS, 40), exponents[0])
            b = drawn(rng, (40, COLUMNS), exponents[1])
            c = np.empty((ROWS, COLUMNS), np.float32)
            block(a, b, c)
            expected = as_the_manual_says(a, b)
            if name != "huge":
                assert np.isfinite(expected).all()
                assert expected.any()
            nan = np.isnan(expected)
            assert (np.isnan(c) == nan).all(), name
            same = c.view(np.uint32) == expected.view(np.uint32)
            assert (same | nan).all(), name
    # Denormals are not flushed any more: the control register is as it was before.
    assert np.float32(1e-39) * np.float32(0.5) != 0
