"""Arithmetic on vectors to numpy's bits, activations, and dropout."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.memory import LARGE, aligned, empty
from daskdl.kernels.runtime.passes import PAST
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors import activations
from daskdl.kernels.vectors.arithmetic import (
    BLOCK,
    add_bias,
    add_into,
    added,
    bias_gradient,
    clear,
    clip,
    copied,
    copy_to,
    dot,
    times,
)
from daskdl.kernels.vectors.dropout import dropout, philox, words
from daskdl.kernels.vectors.prelu import backward, forward
from tests.daskdl.gradients import same_bits


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sum_is_numpys(dtype, threads):
    a, b = np.random.default_rng(0).normal(size=(2, 3, grain.SUM + 5)).astype(dtype)
    a[0, :2] = np.nan, np.inf
    with thread_budget(threads):
        np.testing.assert_array_equal(added(a, b), a + b)
        np.testing.assert_array_equal(added(a[:, ::2], b[:, ::2]), a[:, ::2] + b[:, ::2])
        np.testing.assert_array_equal(added(a[:2, 1:], b[1:, 1:]), a[:2, 1:] + b[1:, 1:])
        for total, other in ((a.copy(), b), (a.T.copy().T, b), (a.copy(), b.astype("f4"))):
            add_into(total, other)
            np.testing.assert_array_equal(total, a + other)


def test_sums_of_small_arrays_broadcast_and_mix_as_numpys():
    a, b = np.ones((2, 3), "f4"), np.ones(3, "f8")
    assert added(a, b).dtype == np.float64
    assert added(a, b).shape == (2, 3)


LONG = 2 * grain.STREAM
SHAPES = [(0, 3), (4, 0), (1, 1), (7,), (2, 3, 5), (LONG // 40 + 3, 40), (3, LONG // 2, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sum_with_a_bias_is_numpys(shape, dtype, threads):
    rng = np.random.default_rng(0)
    y, bias = rng.normal(size=shape).astype(dtype), rng.normal(size=shape[-1]).astype(dtype)
    expected = y + bias
    with thread_budget(threads):
        add_bias(y, bias)
        gradient = bias_gradient(expected)
    np.testing.assert_array_equal(y, expected)
    assert gradient.dtype == y.dtype
    exact = expected.astype("f8").sum(tuple(range(len(shape) - 1)))
    np.testing.assert_allclose(gradient, exact, rtol=1e-5, atol=1e-3 if dtype == "f4" else 1e-9)


def test_a_bias_goes_to_any_layout_and_dtype():
    y, bias = np.ones((4, 3, 2), "f4"), np.arange(2.0)
    turned, whole = y.transpose(1, 0, 2), np.zeros((2, 2), int)
    add_bias(turned, bias)
    np.testing.assert_array_equal(y, np.broadcast_to(1 + bias, y.shape))
    add_bias(whole, np.array([1, 2]))
    np.testing.assert_array_equal(whole, [[1, 2], [1, 2]])
    np.testing.assert_array_equal(bias_gradient(turned), [12, 24])
    assert bias_gradient(turned.astype("f2")).dtype == np.float16


SIZES = [0, 7, 40_000, (1 << 20) + 3]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_multiples_are_numpys_and_may_take_the_place_of_the_numbers(n, threads):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    original, out = x.copy(), empty(n + 1, np.float32)
    with thread_budget(threads):
        for start in (0, 1):  # in memory that is aligned, or is not
            out[:] = -1
            assert times(x, 7, out[start : start + n])
            np.testing.assert_array_equal(out[start : start + n], original * np.float32(7))
            assert out[0 if start else n] == -1
        np.testing.assert_array_equal(x, original)
        assert times(x, 7, x[:])
        np.testing.assert_array_equal(x, original * np.float32(7))
        x[n // 2 : n // 2 + 1] = np.inf
        assert times(x, 7, x) == (n == 0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", SIZES[1:])
def test_one_number_that_is_not_finite_is_seen_anywhere(n, value, threads):
    x, out = np.ones(n, np.float32), empty(n, np.float32)
    for place in (0, n // 2, n - 1):
        x[place] = value
        with thread_budget(threads):
            assert not times(x, 7, out)
        x[place] = 1


def test_the_largest_and_the_smallest_numbers_are_finite():
    largest, smallest = np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal
    x = np.array([largest, -largest, smallest, 0, -0.0], np.float32)
    assert times(x, 7, np.empty_like(x))  # though 7 times the largest is not


@pytest.mark.parametrize("n", [0, 1, 1000, BLOCK, 5 * BLOCK + 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_dot_product_is_the_sum_of_products(n, dtype):
    a, b = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
    exact = math.fsum(a.astype(float) * b.astype(float))
    assert dot(a, b) == pytest.approx(exact, rel=1e-12, abs=1e-9)


def test_two_threads_give_a_dot_product_the_bits_of_one():
    a, b = np.random.default_rng(0).normal(size=(2, 9 * BLOCK + 7)).astype("f4")
    same_bits(lambda: np.array(dot(a, b)))


@pytest.mark.parametrize("n", [7, (1 << 20) + 3])
def test_clipping_is_numpys(n):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    x[1], x[2], x[3] = np.inf, -np.inf, np.nan
    original = x.copy()
    np.testing.assert_array_equal(clip(x, 0.5, scale=2), np.clip(2 * x, -0.5, 0.5))
    np.testing.assert_array_equal(x, original)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_a_copy_has_all_numbers_and_its_own_memory(n, threads):
    x = np.random.default_rng(0).normal(size=n).astype(np.float32)
    with thread_budget(threads):
        new = copied(x)
    np.testing.assert_array_equal(new, x)
    assert not np.shares_memory(new, x)


def test_a_copy_of_a_single_number_keeps_its_shape():
    new = copied(np.array(3.0, np.float32))
    assert new.shape == ()
    assert new == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_copies_of_parts_that_begin_anywhere_and_other_dtypes(threads):
    rng = np.random.default_rng(1)
    x, wide = rng.normal(size=3 << 20).astype(np.float32), rng.normal(size=1 << 20)
    whole, cast, apart = (empty(3 << 20, np.float32) for _ in range(3))
    with thread_budget(threads):
        copy_to(whole, x)
        copy_to(whole[5 : 5 + (2 << 20)], x[: 2 << 20])
        copy_to(cast[: 1 << 20], wide)
        copy_to(apart[: 1 << 20], x[::3])
    np.testing.assert_array_equal(whole[5 : 5 + (2 << 20)], x[: 2 << 20])
    np.testing.assert_array_equal(whole[:5], x[:5])
    np.testing.assert_array_equal(whole[5 + (2 << 20) :], x[5 + (2 << 20) :])
    np.testing.assert_array_equal(cast[: 1 << 20], wide.astype(np.float32))
    np.testing.assert_array_equal(apart[: 1 << 20], x[::3])


def test_a_copy_onto_itself_stays():
    x = empty(2 << 20, np.float32)
    x[:] = 1
    copy_to(x, x)
    assert (x == 1).all()


def test_copies_to_other_shapes_are_refused():
    x = empty(2 << 20, np.float32)
    with pytest.raises(ValueError, match="broadcast"):
        copy_to(x, np.zeros(3, np.float32))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0, 5, PAST // 4 + 1027])  # the last streams, and ends oddly
def test_all_cleared_numbers_are_zero_and_no_others(size, dtype, threads):
    whole = empty(size + 16, dtype)
    whole[:] = 1
    with thread_budget(threads):
        clear(whole[:size])
    assert not whole[:size].any()
    assert (whole[size:] == 1).all()


def test_a_vector_off_the_cache_lines_is_cleared_too():
    whole = empty(PAST, np.float32)
    whole[:] = 1
    clear(whole[1:-1])
    assert whole.sum() == 2


FORWARD = [name[:-5] for name in vars(activations) if name.endswith("_back")]


@pytest.mark.parametrize("name", ["relu", "clip", "gelu", "softplus"])
def test_near_and_past_the_caches_are_the_same(name):
    settings = np.array([-0.5, 0.5], "f4")
    x = np.random.default_rng(0).normal(size=1003).astype("f4")
    x.flags.writeable = False
    for kernel, inputs in (
        (getattr(activations, name), (x,)),
        (getattr(activations, f"{name}_back"), (x, x)),
    ):
        near, past = aligned(1003, "f4"), aligned(1003, "f4")
        kernel(*inputs, near, settings, None)
        kernel(*inputs, past, settings, True)
        np.testing.assert_array_equal(near, past)


def test_each_gradient_kernel_has_a_forward_kernel():
    assert len(FORWARD) == 12
    assert all(hasattr(activations, name) for name in FORWARD)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5000, 31), (7, 100_003)])
def test_threads_do_not_change_the_sums_of_prelu(shape):
    x, dy = np.random.default_rng(0).standard_normal((2, *shape), np.float32)
    slope = np.random.default_rng(1).random(shape[1], np.float32)
    y, dx, d_slope = same_bits(lambda: (forward(x, slope), *backward(x, slope, dy)))
    np.testing.assert_array_equal(y, np.where(x > 0, x, slope * x))
    np.testing.assert_array_equal(dx, np.where(x > 0, dy, slope * dy))
    exact = np.where(x > 0, 0, dy.astype(float) * x).sum(0)
    np.testing.assert_allclose(d_slope, exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_known_answers(counter, key, expected):
    """The file kat_vectors of Random123, philox4x32 with 10 rounds."""
    result = np.empty((4, 1), np.uint32)
    number = np.uint64(counter[0] | counter[1] << 32)
    philox(number, np.array(key + counter[2:], np.uint32), result)
    assert result[:, 0].tolist() == expected


def test_words_take_negative_and_large_numbers():
    assert words(-1, 2**64 + 3).tolist() == [2**32 - 1, 2**32 - 1, 3, 0]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_the_dropped_share_and_the_scale_of_the_others(rate):
    n = 200_000
    y = dropout(np.full(n, 2.0, np.float32), rate, 1, 0)
    assert set(np.unique(y)) == {0, np.float32(2) * np.float32(1 / (1 - rate))}
    dropped = (y == 0).mean()
    assert abs(dropped - rate) < 5 * np.sqrt(rate * (1 - rate) / n)


def test_all_or_nothing():
    x = np.ones(5000, np.float32)
    np.testing.assert_array_equal(dropout(x, 0.0, 1, 0), x)
    np.testing.assert_array_equal(dropout(x, 1.0, 1, 0), 0)


def test_seeds_counters_and_positions_are_independent():
    x = np.ones(100_000, np.float32)
    masks = [dropout(x, 0.5, *key) > 0 for key in ((0, 0), (1, 0), (0, 1), (1 << 32, 0))]
    masks += [np.roll(masks[0], shift) for shift in (1, 256, 1024)]
    agreement = np.array([[np.mean(a == b) for a in masks] for b in masks])
    assert (np.abs(agreement - 0.5)[~np.eye(len(masks), dtype=bool)] < 0.01).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 1023, 1025, 200_001, LARGE // 4 + 77])
def test_neither_threads_nor_length_nor_dtype_change_the_draws(n):
    x = np.ones(n, np.float32)
    alone = same_bits(lambda: dropout(x, 0.3, 7, 8))
    part = n - n // 3
    np.testing.assert_array_equal(dropout(x[:part], 0.3, 7, 8), alone[:part])
    if n < 10_000:
        np.testing.assert_array_equal(dropout(x.astype(float), 0.3, 7, 8) > 0, alone > 0)


def test_nan_stays_nan():
    assert np.isnan(dropout(np.full(100, np.nan), 0.5, 0, 0)).all()
