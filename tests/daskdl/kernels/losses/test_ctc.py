"""CTC against the sum over all paths; threads change nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

from daskdl.kernels.losses import ctc
from daskdl.kernels.runtime.threads import thread_budget


def likelihood(p, labels, blank=0):
    """Sum the probabilities of all paths that read as the labels; p (T, C)."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        read = [c for c, _ in itertools.groupby(path) if c != blank]
        if read == labels:
            total += np.prod([p[t, c] for t, c in enumerate(path)])
    return total


@pytest.mark.parametrize("labels", [[], [1], [1, 1], [2, 1], [1, 2, 1]])
def test_it_is_the_sum_over_all_paths(labels):
    x = special.log_softmax(np.random.default_rng(0).normal(size=(1, 5, 3)), -1)
    row = np.array([labels + [-1] * (3 - len(labels))])
    losses, _ = ctc.forward(x, row, np.array([len(labels)]), np.array([5]), 0)
    assert losses[0] == pytest.approx(-np.log(likelihood(np.exp(x[0]), labels)))


@pytest.mark.parametrize("scale", [1, 1e2, 1e4])
def test_likelihoods_far_from_one_are_right(scale):
    x = special.log_softmax(scale * np.random.default_rng(1).normal(size=(1, 7, 3)), -1)
    paths = [
        sum(x[0, t, c] for t, c in enumerate(path))
        for path in itertools.product(range(3), repeat=7)
        if [c for c, _ in itertools.groupby(path) if c] == [2, 1, 1]
    ]
    losses, _ = ctc.forward(x, np.array([[2, 1, 1]]), np.array([3]), np.array([7]), 0)
    assert losses[0] == pytest.approx(-special.logsumexp(paths), rel=1e-14)


def test_steps_beyond_the_length_do_not_count():
    x = special.log_softmax(np.random.default_rng(0).normal(size=(1, 6, 3)), -1)
    arguments = np.array([[1, 2]]), np.array([2]), np.array([4]), 0
    forwards = ctc.forward(x, *arguments)
    assert forwards[0][0] == pytest.approx(-np.log(likelihood(np.exp(x[0, :4]), [1, 2])))
    gradient = ctc.gradient(x, *arguments, forwards, np.ones(1))
    assert (gradient[0, 4:] == 0).all()
    np.testing.assert_allclose(gradient[0, :4].sum(-1), 0, atol=1e-12)


def test_threads_do_not_change_the_bits():
    rng = np.random.default_rng(0)
    x = special.log_softmax(rng.normal(size=(6, 80, 20)), -1)
    labels, counts, lengths = rng.integers(1, 20, (6, 15)), np.full(6, 15), np.arange(75, 81)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            forwards = ctc.forward(x, labels, counts, lengths, 0)
            results.append(
                (forwards[0], ctc.gradient(x, labels, counts, lengths, 0, forwards, np.ones(6)))
            )
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
