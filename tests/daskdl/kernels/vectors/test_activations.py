"""Kernels of activations and of dropout."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.memory import LARGE, SMALL, empty
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors import activations
from daskdl.kernels.vectors.dropout import dropout, philox, words
from daskdl.kernels.vectors.prelu import backward, forward

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
        near, past = empty(SMALL, "f4")[:1003], empty(SMALL, "f4")[:1003]
        kernel(*inputs, near, settings, None)
        kernel(*inputs, past, settings, True)
        np.testing.assert_array_equal(near, past)


def test_there_is_a_kernel_for_each_way_back():
    assert len(FORWARD) == 12
    assert all(hasattr(activations, name) for name in FORWARD)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5000, 31), (7, 100_003)])
def test_threads_do_not_change_the_sums(shape):
    x, dy = np.random.default_rng(0).standard_normal((2, *shape), np.float32)
    slope = np.random.default_rng(1).random(shape[1], np.float32)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            results.append((forward(x, slope), *backward(x, slope, dy)))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    y, dx, d_slope = results[0]
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
def test_the_part_that_is_dropped_and_what_the_others_become(rate):
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
    with thread_budget(1):
        alone = dropout(x, 0.3, 7, 8)
    with thread_budget(2):
        np.testing.assert_array_equal(dropout(x, 0.3, 7, 8), alone)
    part = n - n // 3
    np.testing.assert_array_equal(dropout(x[:part], 0.3, 7, 8), alone[:part])
    if n < 10_000:
        np.testing.assert_array_equal(dropout(x.astype(float), 0.3, 7, 8) > 0, alone > 0)


def test_nan_stays_nan():
    assert np.isnan(dropout(np.full(100, np.nan), 0.5, 0, 0)).all()
