"""Initial weights: their range, their spread, and that a seed fixes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskdl.nn import initialise


@pytest.mark.parametrize(
    ("draw", "bound"),
    [
        (lambda rng: initialise.uniform(rng, (100, 200), 25), 1 / 5),
        (lambda rng: initialise.glorot(rng, (100, 200), (70, 80)), math.sqrt(6 / 150)),
    ],
)
def test_uniform_within_its_bound(draw, bound):
    first, again, other = (draw(initialise.generator(seed)).data for seed in (1, 1, 2))
    assert first.dtype == np.float32
    assert 0.99 * bound < np.abs(first).max() <= bound * (1 + 1e-6)
    assert first.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert abs(first.mean()) < 0.02 * bound
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_without_a_seed_every_layer_differs():
    first, second = (initialise.generator(None).random(4) for _ in range(2))
    assert (first != second).any()


def test_a_forked_process_does_not_draw_what_its_parent_does(monkeypatch):
    mine = initialise.generator(None)
    assert initialise.generator(None) is mine
    monkeypatch.setattr(initialise.os, "getpid", lambda: -1)
    assert initialise.generator(None) is not mine


def test_zeros_and_forget_bias():
    assert not initialise.zeros((2, 3)).data.any()
    np.testing.assert_array_equal(initialise.forget_bias(2), [0, 0, 1, 1, 0, 0, 0, 0])
