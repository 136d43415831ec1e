"""Row-wise steps against the steps of the whole table; what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ShapeError
from daskdl.kernels.optim import adagrad as squares
from daskdl.kernels.optim import adam as moments
from daskdl.kernels.optim import sgd as descent
from daskdl.kernels.optim.rows import step_rows
from daskdl.kernels.optim.steps import step
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.embedding import row_gradient

N, C, BATCH = 50, 7, 30
#: Kernel, vectors of state, factors after the gradient's scale.
KERNELS = {
    "sgd": (descent.sgd, 1, 0, [0.1, 0.2]),
    "momentum": (descent.momentum, 1, 1, [0.1, 0.2, 0.9, 1.0, 1.0]),
    "adagrad": (squares.adagrad, 1, 1, [0.1, 0.2, 1e-10]),
    "adam": (moments.adam, 1, 2, [0.1, 0.9, 0.1, 0.999, 0.001, 0.01, 1e-8, 0.99, 0.0]),
}


def table(n=N, c=C, seed=1):
    return np.random.default_rng(seed).random((n, c), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("width", [1, 7, 3000])  # one row is more than a block in the last
def test_rows_are_stepped_to_the_bits_of_the_whole_step(name, width):
    kernel, scale, n_state, others = KERNELS[name]
    weights, state = table(c=width), [table(c=width, seed=k) for k in range(n_state)]
    ids, d = np.random.default_rng(0).integers(0, N, BATCH), table(BATCH, width)
    unique, rows = row_gradient(ids, d, N)
    dense = np.zeros_like(weights)
    dense[unique] = rows
    factors = np.array([scale, *others], np.float32)
    whole = step(kernel, weights.ravel(), dense.ravel(), [s.ravel() for s in state], factors[None])
    before = [weights.copy(), *(s.copy() for s in state)]
    step_rows(kernel, weights, unique, rows, state, factors)
    for found, all_stepped, old in zip([weights, *state], whole, before, strict=True):
        expected = old.copy()
        expected[unique] = all_stepped.reshape(old.shape)[unique]
        np.testing.assert_array_equal(found, expected)
    assert (weights != before[0]).any()


@pytest.mark.slow
def test_only_the_rows_of_the_batch_change_whatever_the_threads():
    n, c = 4000, 64
    kernel, scale, _, others = KERNELS["adam"]
    unique, rows = row_gradient(
        np.random.default_rng(0).integers(0, n, 2000), table(2000, c, seed=3), n
    )
    before, results = table(n, c), []
    for threads in (1, 2):
        with thread_budget(threads):
            weights = before.copy()
            state = [np.ones_like(weights) for _ in range(2)]
            step_rows(kernel, weights, unique, rows, state, np.array([scale, *others]))
            results.append((weights, *state))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    changed = (results[0][0] != before).any(1)
    np.testing.assert_array_equal(np.flatnonzero(changed), unique)


@pytest.mark.parametrize(
    ("ids", "shape", "sentence"),
    [
        ([1, 1], (2, C), "expected increasing ids, each once"),
        ([2, 1], (2, C), "expected increasing ids, each once"),
        ([1, N], (2, C), f"expected ids from 0 to {N - 1}, found 1 to {N}"),
        ([1, 2], (2, C + 1), r"expected a gradient of shape \(2, 7\) for 2 ids, found \(2, 8\)"),
    ],
)
def test_mistakes_are_told_before_anything_changes(ids, shape, sentence):
    weights = table()
    with pytest.raises(ShapeError, match=sentence):
        step_rows(descent.sgd, weights, np.array(ids), np.ones(shape, "f4"), [], [1, 0, 1])
    np.testing.assert_array_equal(weights, table())


def test_what_cannot_be_stepped_in_place_is_refused():
    ids, rows, weights = np.array([1]), np.ones((1, C), "f4"), table()
    with pytest.raises(ShapeError, match="C-contiguous writable weights"):
        step_rows(descent.sgd, np.asfortranarray(weights), ids, rows, [], [1, 0, 1])
    with pytest.raises(ShapeError, match=r"state of shape .* like the weights' \(50, 7\) float32"):
        step_rows(squares.adagrad, weights, ids, rows, [np.ones((N, C))], [1, 0, 1, 0])


@pytest.mark.parametrize("name", ["sgd", "momentum"])
def test_no_rows_is_no_step(name):
    kernel, scale, n_state, others = KERNELS[name]
    weights, state = table(), [table()] * n_state
    step_rows(kernel, weights, np.empty(0, int), np.empty((0, C), "f4"), state, [scale, *others])
    np.testing.assert_array_equal(weights, table())
