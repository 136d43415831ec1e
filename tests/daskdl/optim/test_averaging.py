"""Means of gradients and of weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import EMA, SGD, Accumulate, Adam
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


@runs.few
@given(decay=st.floats(0, 0.999))
def test_agrees_with_pytorch(decay, torch):
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = torch.nn.Linear(runs.SIZE, 1, bias=False)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
    method, w = EMA(SGD(0.3), decay), runs.start()
    state = method.init(runs.SIZE)
    for i in range(runs.STEPS):
        w, state = method.update(w, runs.gradients(w, i), state, i)
        with torch.no_grad():
            model.weight[0] = torch.tensor(w)
        averaged.update_parameters(model)
        expected = averaged.module.weight.detach().numpy()[0]
        np.testing.assert_allclose(method.averaged(state), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(w, runs.descend(SGD(0.3)))


@runs.few
@given(points=runs.cuts)
def test_slices_have_the_bits_of_the_whole_ema(points):
    runs.check_pure(EMA(SGD(0.1, 0.9), 0.5))
    runs.check_slices(EMA(SGD(0.1, 0.9), 0.5), points)


def test_a_decay_of_one_is_refused():
    with pytest.raises(SettingsError, match="EMA: expected 0 <= decay < 1, found 1"):
        EMA(SGD(), 1)
