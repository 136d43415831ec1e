"""LBFGS against PyTorch's without a line search, one step for each gradient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import LBFGS
from tests.daskdl.optim import runs


def torchs(torch, rate, history):
    def make(parameters):
        # A first evaluation of each step is all that one iteration makes.
        return torch.optim.LBFGS(parameters, lr=rate, max_iter=1, history_size=history)

    return make


@runs.few
@given(rate=st.floats(0.1, 1), history=st.integers(1, 6), dtype=runs.dtypes)
def test_agrees_with_pytorch(rate, history, dtype, torch):
    expected = runs.torch_descends(torchs(torch, rate, history), torch, np.dtype(dtype))
    found = runs.descend(LBFGS(rate, history), dtype=np.dtype(dtype))
    # The gradients wobble: what little they share is divided by.
    tolerance = 1e-3 if dtype == "f4" else 1e-7
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_a_bowl_needs_few_steps():
    """Of 37 steepnesses between 1 and 100, gradient descent would need hundreds."""
    method, w = LBFGS(history=20), np.full(37, 5.0)
    steep, state = np.linspace(1, 100, 37), LBFGS(history=20).init(37)
    for i in range(60):
        w, state = method.update(w, steep * (w - 1), state, i)
    np.testing.assert_allclose(w, 1, atol=1e-4)


def test_it_stays_where_the_gradient_vanishes():
    method, w = LBFGS(), runs.start()
    state = method.init(runs.SIZE)
    new, after = method.update(w, np.zeros_like(w), state, 0)
    np.testing.assert_array_equal(new, w)
    assert after.keys() == state.keys()
    g = runs.gradients(w, 0)
    later, early = (method.update(w, g, s, i)[0] for s, i in ((after, 1), (state, 0)))
    np.testing.assert_array_equal(later, early)  # a first step, whenever it comes


def test_it_changes_none_of_its_inputs():
    method, w = LBFGS(history=2), runs.start()
    state = method.init(runs.SIZE)
    for i in range(4):
        g = runs.gradients(w, i)
        arrays = [w, g, *state.values()]
        kept = [a.copy() for a in arrays]
        for array in arrays:
            array.flags.writeable = False
        new, after = method.update(w, g, state, i)
        again, _ = method.update(w, g, state, i)
        for before, array in zip(kept, arrays, strict=True):
            np.testing.assert_array_equal(before, array)
        np.testing.assert_array_equal(new, again)
        assert after.keys() == state.keys()
        assert all(a.shape == (runs.SIZE,) and a.dtype == np.float32 for a in after.values())
        w, state = new, after


def test_only_the_whole_vector_can_be_stepped():
    assert LBFGS().part([slice(0, 3)]) is None
    assert not LBFGS().by_element


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="LBFGS: expected history to be a whole number of at"):
        LBFGS(history=0)
