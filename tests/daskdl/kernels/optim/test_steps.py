"""Steps of optim methods: row by row, in ranges, in place, and with gradients not finite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.errors import ShapeError
from daskdl.kernels.optim import updates
from daskdl.kernels.optim.rows import step_rows
from daskdl.kernels.optim.steps import step
from daskdl.kernels.runtime.passes import PAST
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.embedding import row_gradient
from tests.daskdl.gradients import same_bits

N, C, BATCH = 50, 7, 30
#: Kernel, vectors of state, factors.
STEPS = {
    "sgd": (updates.sgd, 0, [1, 0, 0.01]),
    "momentum": (updates.momentum, 1, [1, 0.1, 0.01, 0.9, 1, 0]),
    "adagrad": (updates.adagrad, 1, [1, 0, 0.01, 1e-3]),
    "adadelta": (updates.adadelta, 2, [1, 0, 0.3, 0.9, 0.1, 1e-3]),
    "rmsprop": (updates.rmsprop, 3, [1, 0, 0.01, 0.9, 0.1, 1e-3, 0.5]),
    "adam": (updates.adam, 2, [1, 0, 0.9, 0.1, 0.99, 0.01, 0.01, 1e-3, 0.999, 0]),
    "amsgrad": (updates.amsgrad, 3, [1, 0, 0.9, 0.1, 0.99, 0.01, 0.01, 1e-3, 0.999, 0]),
    "adamax": (updates.adamax, 2, [1, 0, 0.9, 0.1, 0.99, 0.01, 1e-3]),
    "ftrl": (updates.ftrl, 2, [1, 0, 20, 1, 0.8, 0.3]),
}


def table(n=N, c=C, seed=1):
    return np.random.default_rng(seed).random((n, c), np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sgd", "momentum", "adagrad", "adam"])
@pytest.mark.parametrize("width", [1, 7, 3000])  # one row is more than a block in the last
def test_rows_are_stepped_to_the_bits_of_the_whole_step(name, width):
    kernel, n_state, factors = STEPS[name]
    weights, state = table(c=width), [table(c=width, seed=k) for k in range(n_state)]
    ids, d = np.random.default_rng(0).integers(0, N, BATCH), table(BATCH, width)
    unique, rows = row_gradient(ids, d, N)
    dense = np.zeros_like(weights)
    dense[unique] = rows
    factors = np.array(factors, np.float32)
    whole = step(kernel, weights.ravel(), dense.ravel(), [s.ravel() for s in state], factors[None])
    before = [weights.copy(), *(s.copy() for s in state)]
    step_rows(kernel, weights, unique, rows, state, factors)
    for actual, all_stepped, old in zip([weights, *state], whole, before, strict=True):
        expected = old.copy()
        expected[unique] = all_stepped.reshape(old.shape)[unique]
        np.testing.assert_array_equal(actual, expected)
    assert (weights != before[0]).any()


@pytest.mark.slow
def test_only_the_rows_of_the_batch_change_with_any_threads():
    n, c = 4000, 64
    kernel, _, factors = STEPS["adam"]
    unique, rows = row_gradient(
        np.random.default_rng(0).integers(0, n, 2000), table(2000, c, seed=3), n
    )
    before = table(n, c)

    def stepped():
        weights, *state = before.copy(), *np.ones((2, *before.shape), before.dtype)
        step_rows(kernel, weights, unique, rows, state, np.array(factors))
        return weights, *state

    changed = (same_bits(stepped)[0] != before).any(1)
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
def test_mistakes_are_refused_before_anything_changes(ids, shape, sentence):
    weights = table()
    with pytest.raises(ShapeError, match=sentence):
        step_rows(updates.sgd, weights, np.array(ids), np.ones(shape, "f4"), [], [1, 0, 1])
    np.testing.assert_array_equal(weights, table())


def test_arrays_that_cannot_be_stepped_in_place_are_refused():
    ids, rows, weights = np.array([1]), np.ones((1, C), "f4"), table()
    with pytest.raises(ShapeError, match="C-contiguous writable weights"):
        step_rows(updates.sgd, np.asfortranarray(weights), ids, rows, [], [1, 0, 1])
    with pytest.raises(ShapeError, match=r"state of shape .* like the weights' \(50, 7\) float32"):
        step_rows(updates.adagrad, weights, ids, rows, [np.ones((N, C))], [1, 0, 1, 0])


@pytest.mark.parametrize("name", ["sgd", "momentum"])
def test_no_rows_is_no_step(name):
    kernel, n_state, factors = STEPS[name]
    weights, state = table(), [table()] * n_state
    step_rows(kernel, weights, np.empty(0, int), np.empty((0, C), "f4"), state, factors)
    np.testing.assert_array_equal(weights, table())


LARGE = PAST // 4 + 5
ADAM = (1.0, 0.01, 0.9, 0.1, 0.99, 0.01, 0.01, 1e-8, 0.999, 0.0)


def vectors(n, count=4):
    return np.random.default_rng(n).random((count, n), np.float32)


def table_steps(*rows):
    return np.array(rows, np.float32)


@pytest.mark.slow
@settings(max_examples=20)
@given(
    n=st.sampled_from([1, 17, 5000, LARGE, LARGE + 100]),
    stops=st.lists(st.integers(0, LARGE), max_size=6),
    threads=st.integers(1, 2),
)
def test_each_range_has_its_own_factors(n, stops, threads):
    w, g = vectors(n, 2)
    stops = np.array([*sorted(s % n for s in stops), n])
    kinds = np.arange(len(stops)) % 3
    rows = table_steps((1, 0, 0.5), (2, 0, 0), (1, 1, 0.25))
    with thread_budget(threads):
        (new,) = step(updates.sgd, w, g, [], rows, (stops, kinds))
    start = 0
    for stop, kind in zip(stops, kinds, strict=True):
        (expected,) = step(updates.sgd, w[start:stop], g[start:stop], [], rows[kind : kind + 1])
        np.testing.assert_array_equal(new[start:stop], expected)
        start = stop


@pytest.mark.parametrize("n", [(1 << 17) + 3, LARGE])
def test_two_threads_give_the_bits_of_one(n):
    w, g, *state = vectors(n)
    same_bits(lambda: step(updates.adam, w, g, state, table_steps(ADAM)))


@pytest.mark.slow
@settings(max_examples=20)
@given(start=st.integers(0, 70), length=st.integers(0, 300))
def test_an_element_has_the_same_bits_wherever_it_lies(start, length):
    w, g, *state = vectors(LARGE)
    here = slice(start, start + length)
    whole = step(updates.adam, w, g, state, table_steps(ADAM))  # vector registers, past the caches
    part = step(updates.adam, w[here], g[here], [s[here] for s in state], table_steps(ADAM))
    for one, two in zip(whole, part, strict=True):
        np.testing.assert_array_equal(one[here], two)


def test_none_stands_for_state_that_a_method_does_without():
    w, g, square, _ = vectors(100)
    factors = table_steps((1, 0, 0.1, 0.9, 0.1, 1e-8, 0))
    new, after, mean, velocity = step(updates.rmsprop, w, g, [square, None, None], factors)
    assert new.shape == after.shape == (100,)
    assert mean is None
    assert velocity is None


@pytest.mark.parametrize("n", [17, LARGE])
@pytest.mark.parametrize("threads", [1, 2])
def test_overwriting_gives_the_same_bits_in_place(n, threads):
    w, g, *state = vectors(n)
    rows, ranges = table_steps(ADAM, ADAM), (np.array([n // 3, n // 2, n]), np.array([0, -1, 1]))
    original = g.copy()
    expected = step(updates.adam, w, g, state, rows, ranges)
    with thread_budget(threads):
        new = step(updates.adam, w, g, state, rows, ranges, overwrite=True)
    for before, after, right in zip([w, *state], new, expected, strict=True):
        assert after is before or after.base is before.base
        np.testing.assert_array_equal(after, right)
    np.testing.assert_array_equal(g, original)


def test_read_only_arrays_are_not_overwritten():
    w, g, *state = vectors(50)
    before = [a.copy() for a in (w, *state)]
    state[1].flags.writeable = False
    new = step(updates.adam, w, g, state, table_steps(ADAM), overwrite=True)
    np.testing.assert_array_equal([w, *state], before)
    assert (new[0] != w).all()


def test_shape_is_kept_and_nothing_is_changed():
    w, g = vectors(60, 2).reshape(2, 6, 10)
    originals = w.copy(), g.copy()
    w.flags.writeable = g.flags.writeable = False
    (new,) = step(updates.sgd, w, g, [], table_steps((1, 0, 1)))
    np.testing.assert_array_equal(new, w - g)
    np.testing.assert_array_equal((w, g), originals)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("length", [3, 1999, 2001])
@pytest.mark.parametrize("place", range(3))
def test_vectors_of_other_lengths_are_refused_before_anything_is_written(place, length, overwrite):
    w, *others = vectors(2000)
    others[place] = np.zeros(length, np.float32)
    original = w.copy()
    with pytest.raises(ShapeError, match=rf"shape \(2000,\) like the weights, found \({length},\)"):
        step(updates.adam, w, others[0], others[1:], table_steps(ADAM), overwrite=overwrite)
    np.testing.assert_array_equal(w, original)


def test_ranges_of_another_layout_are_refused():
    w, g = vectors(20, 2)
    stops, kinds = np.array([5, 21]), np.array([0, 0])
    with pytest.raises(ShapeError, match="a vector of 21 numbers, as the layout has them, found 2"):
        step(updates.sgd, w, g, [], table_steps((1, 0, 0.5)), (stops, kinds))


@pytest.mark.parametrize("name", STEPS)
def test_a_gradient_that_is_not_a_number_shows_where_it_is(name):
    kernel, n_state, factors = STEPS[name]
    w, g, *state = 0.1 + np.random.default_rng(5).random((5, 7))
    g[2] = np.nan
    new = step(kernel, w, g, [10 + s for s in state[:n_state]], np.array([factors]))[0]
    np.testing.assert_array_equal(np.isnan(new), np.arange(7) == 2)


def test_an_infinite_gradient_shows():
    w, g, v = np.ones((3, 5))
    g[1] = np.inf
    new, velocity = step(updates.momentum, w, g, [v], np.array([STEPS["momentum"][2]]))
    assert new[1] == -np.inf
    assert velocity[1] == np.inf
    assert np.isfinite(new[[0, 2, 3, 4]]).all()
