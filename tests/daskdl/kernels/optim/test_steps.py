"""A kernel runs over a vector by threads, by ranges, past the caches or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.errors import ShapeError
from daskdl.kernels.optim.adagrad import rmsprop
from daskdl.kernels.optim.adam import adam
from daskdl.kernels.optim.sgd import sgd
from daskdl.kernels.optim.steps import step
from daskdl.kernels.runtime.nontemporal import PAST
from daskdl.kernels.runtime.threads import thread_budget

LARGE = PAST // 4 + 5
ADAM = (1.0, 0.01, 0.9, 0.1, 0.99, 0.01, 0.01, 1e-8, 0.999, 0.0)


def vectors(n, count=4):
    return np.random.default_rng(n).random((count, n), np.float32)


def table(*rows):
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
    rows = table((1, 0, 0.5), (2, 0, 0), (1, 1, 0.25))
    with thread_budget(threads):
        (new,) = step(sgd, w, g, [], rows, (stops, kinds))
    start = 0
    for stop, kind in zip(stops, kinds, strict=True):
        (expected,) = step(sgd, w[start:stop], g[start:stop], [], rows[kind : kind + 1])
        np.testing.assert_array_equal(new[start:stop], expected)
        start = stop


@pytest.mark.parametrize("n", [(1 << 17) + 3, LARGE])
def test_two_threads_give_the_bits_of_one(n):
    w, g, *state = vectors(n)
    with thread_budget(1):
        alone = step(adam, w, g, state, table(ADAM))
    with thread_budget(2):
        together = step(adam, w, g, state, table(ADAM))
    for one, two in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
@settings(max_examples=20)
@given(start=st.integers(0, 70), length=st.integers(0, 300))
def test_an_element_has_the_same_bits_wherever_it_lies(start, length):
    w, g, *state = vectors(LARGE)
    here = slice(start, start + length)
    whole = step(adam, w, g, state, table(ADAM))  # vector registers, past the caches
    part = step(adam, w[here], g[here], [s[here] for s in state], table(ADAM))
    for one, two in zip(whole, part, strict=True):
        np.testing.assert_array_equal(one[here], two)


def test_none_stands_for_state_that_a_method_does_without():
    w, g, square, _ = vectors(100)
    factors = table((1, 0, 0.1, 0.9, 0.1, 1e-8, 0))
    new, after, mean, velocity = step(rmsprop, w, g, [square, None, None], factors)
    assert new.shape == after.shape == (100,)
    assert mean is None
    assert velocity is None


@pytest.mark.parametrize("n", [17, LARGE])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_may_be_overwritten_gets_the_same_bits_where_it_is(n, threads):
    w, g, *state = vectors(n)
    rows, ranges = table(ADAM, ADAM), (np.array([n // 3, n // 2, n]), np.array([0, -1, 1]))
    kept = g.copy()
    expected = step(adam, w, g, state, rows, ranges)
    with thread_budget(threads):
        new = step(adam, w, g, state, rows, ranges, overwrite=True)
    for before, after, wanted in zip([w, *state], new, expected, strict=True):
        assert after is before or after.base is before.base
        np.testing.assert_array_equal(after, wanted)
    np.testing.assert_array_equal(g, kept)


def test_what_cannot_be_written_to_is_left_as_it_was():
    w, g, *state = vectors(50)
    before = [a.copy() for a in (w, *state)]
    state[1].flags.writeable = False
    new = step(adam, w, g, state, table(ADAM), overwrite=True)
    np.testing.assert_array_equal([w, *state], before)
    assert (new[0] != w).all()


def test_shape_is_kept_and_nothing_is_changed():
    w, g = vectors(60, 2).reshape(2, 6, 10)
    kept = w.copy(), g.copy()
    w.flags.writeable = g.flags.writeable = False
    (new,) = step(sgd, w, g, [], table((1, 0, 1)))
    np.testing.assert_array_equal(new, w - g)
    np.testing.assert_array_equal((w, g), kept)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("length", [3, 1999, 2001])
@pytest.mark.parametrize("place", range(3))
def test_vectors_of_other_lengths_are_refused_before_anything_is_written(place, length, overwrite):
    w, *others = vectors(2000)
    others[place] = np.zeros(length, np.float32)
    kept = w.copy()
    with pytest.raises(ShapeError, match=rf"shape \(2000,\) like the weights, found \({length},\)"):
        step(adam, w, others[0], others[1:], table(ADAM), overwrite=overwrite)
    np.testing.assert_array_equal(w, kept)


def test_ranges_of_another_layout_are_refused():
    w, g = vectors(20, 2)
    stops, kinds = np.array([5, 21]), np.array([0, 0])
    with pytest.raises(ShapeError, match="a vector of 21 numbers, as the layout has them, found 2"):
        step(sgd, w, g, [], table((1, 0, 0.5)), (stops, kinds))
