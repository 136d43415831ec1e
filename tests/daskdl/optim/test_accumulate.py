"""Accumulate against steps along the mean of gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Accumulate, Adam
from daskdl.optim.schedules import Step
from tests.daskdl.optim import runs


@runs.few
@given(over=st.integers(1, 4))
def test_it_is_a_step_along_the_mean(over):
    inner = Adam(Step(0.1, every=2))
    method, w = Accumulate(inner, over), runs.start()
    state, rng = method.init(runs.SIZE), np.random.default_rng(over)
    expected, inside = w, inner.init(runs.SIZE)
    for step in range(4):
        draws = rng.normal(size=(over, runs.SIZE)).astype(np.float32)
        for i, g in enumerate(draws, step * over):
            np.testing.assert_array_equal(w, expected) if over == 1 else None
            before = w
            w, state = method.update(w, g, state, i)
            if (i + 1) % over:
                np.testing.assert_array_equal(w, before)
        expected, inside = inner.update(expected, draws.mean(0), inside, step)
        np.testing.assert_allclose(w, expected, rtol=1e-4, atol=1e-5)
        assert not state["accumulate.gradient"].any()


@runs.few
@given(points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(points):
    runs.check_slices(Accumulate(Adam(0.1), 2), points)


def test_it_changes_none_of_its_inputs():
    method, w = Accumulate(Adam(0.1), 2), runs.start()
    state = method.init(runs.SIZE)
    for i in range(4):
        arrays = [w, *state.values()]
        kept = [a.copy() for a in arrays]
        for array in arrays:
            array.flags.writeable = False
        after = method.update(w, runs.gradients(w, i), state, i)
        for before, array in zip(kept, arrays, strict=True):
            np.testing.assert_array_equal(before, array)
        w, state = after


@pytest.mark.parametrize("over", [0, 1.5, True])
def test_impossible_numbers_are_refused(over):
    with pytest.raises(SettingsError, match="Accumulate: expected over to be a whole number of at"):
        Accumulate(Adam(), over)
