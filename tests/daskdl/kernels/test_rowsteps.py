"""Row-wise steps against the steps of the whole table and against PyTorch's sparse ones."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ShapeError
from daskdl.kernels.embedding import dense_gradient, row_gradient
from daskdl.kernels.rowsteps import adagrad_rows, adam_rows, sgd_rows
from daskdl.kernels.threads import thread_budget
from daskdl.optim import SGD, Adagrad

N, C, BATCH = 50, 7, 30


def batches(steps=4, n=N, c=C, batch=BATCH):
    """Yield ids with duplicates and the gradient to their rows."""
    rng = np.random.default_rng(0)
    for _ in range(steps):
        yield rng.integers(0, n, batch), rng.standard_normal((batch, c), np.float32)


def table(n=N, c=C):
    return np.random.default_rng(1).standard_normal((n, c), np.float32)


@pytest.mark.parametrize("method", [SGD(0.1), Adagrad(0.1)], ids=repr)
def test_sgd_and_adagrad_do_what_they_do_to_the_whole_table(method):
    weights, whole = table(), table().reshape(-1)
    state, whole_state = {"square": np.zeros_like(weights)}, method.init(weights.size)
    for i, (ids, d) in enumerate(batches()):
        unique, rows = row_gradient(ids, d, N)
        if isinstance(method, SGD):
            sgd_rows(weights, unique, rows, rate=0.1)
        else:
            adagrad_rows(weights, unique, rows, state, rate=0.1)
        dense = dense_gradient(ids, d, N).reshape(-1)
        whole, whole_state = method.update(whole, dense, whole_state, i)
    np.testing.assert_allclose(weights.reshape(-1), whole, rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")  # PyTorch's own
@pytest.mark.parametrize("name", ["SGD", "Adagrad", "SparseAdam"])
def test_agrees_with_pytorchs_sparse_steps(name, torch):
    weights = table()
    state = {key: np.zeros_like(weights) for key in ("mean", "square")}
    theirs = torch.nn.Parameter(torch.from_numpy(weights.copy()))
    optimizer = getattr(torch.optim, name)([theirs], lr=0.1)
    for i, (ids, d) in enumerate(batches()):
        theirs.grad = torch.sparse_coo_tensor(
            torch.from_numpy(ids)[None], torch.from_numpy(d), (N, C)
        )
        optimizer.step()
        unique, rows = row_gradient(ids, d, N)
        if name == "SGD":
            sgd_rows(weights, unique, rows, rate=0.1)
        elif name == "Adagrad":
            adagrad_rows(weights, unique, rows, state, rate=0.1)
        else:
            adam_rows(weights, unique, rows, state, iteration=i, rate=0.1)
    np.testing.assert_allclose(weights, theirs.detach().numpy(), rtol=2e-5, atol=2e-6)


def test_only_the_rows_of_the_batch_change_whatever_the_threads():
    n, c = 4000, 64
    before, results = table(n, c), []
    ((ids, d),) = batches(1, n, c, 2000)
    unique, rows = row_gradient(ids, d, n)
    for threads in (1, 2):
        with thread_budget(threads):
            weights = before.copy()
            state = {key: np.ones_like(weights) for key in ("mean", "square")}
            adam_rows(weights, unique, rows, state, iteration=0)
            results.append((weights, *state.values()))
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
        sgd_rows(weights, np.array(ids), np.ones(shape, "f4"), rate=1)
    np.testing.assert_array_equal(weights, table())


def test_what_cannot_be_stepped_in_place_is_refused():
    ids, rows, weights = np.array([1]), np.ones((1, C), "f4"), table()
    with pytest.raises(ShapeError, match="C-contiguous writable weights"):
        sgd_rows(np.asfortranarray(weights), ids, rows, rate=1)
    with pytest.raises(ShapeError, match=r"state of shape .* like the weights' \(50, 7\) float32"):
        adagrad_rows(weights, ids, rows, {"square": np.ones((N, C))}, rate=1)


def test_no_rows_is_no_step():
    weights = table()
    sgd_rows(weights, np.empty(0, int), np.empty((0, C), "f4"), rate=1)
    np.testing.assert_array_equal(weights, table())
