"""Means of gradients and of weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.optim import EMA, LAMB, SGD, Accumulate, Adam, ClipNorm, ClipValue
from daskdl.optim.schedules import Step
from daskdl.rows import Rows
from tests.daskdl.optim import runs


@runs.few
@given(over=st.integers(1, 4))
def test_accumulate_steps_along_the_mean(over):
    inner = Adam(Step(0.1, every=2))
    method, w = Accumulate(inner, over), runs.start()
    state, rng = method.init(runs.SIZE), np.random.default_rng(over)
    expected, inner_state = w, inner.init(runs.SIZE)
    for step in range(4):
        draws = rng.normal(size=(over, runs.SIZE)).astype(np.float32)
        for i, g in enumerate(draws, step * over):
            np.testing.assert_array_equal(w, expected) if over == 1 else None
            before = w
            w, state = method.update(w, g, state, i)
            if (i + 1) % over:
                np.testing.assert_array_equal(w, before)
        expected, inner_state = inner.update(expected, draws.mean(0), inner_state, step)
        np.testing.assert_allclose(w, expected, rtol=1e-4, atol=1e-5)
        assert not state["accumulate.gradient"].any()


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


@pytest.mark.parametrize(("clip", "least"), [(ClipNorm, 0.01), (ClipValue, 0)])
@given(bound=st.floats(0, 20, width=32))
def test_clipping_is_pytorchs(clip, least, bound, torch):
    from torch.nn import utils

    bound, g = max(bound, least), runs.gradients(runs.start(), 0)
    parameter = torch.nn.Parameter(torch.zeros(runs.SIZE))
    parameter.grad = torch.tensor(g)
    (utils.clip_grad_norm_ if clip is ClipNorm else utils.clip_grad_value_)([parameter], bound)
    new, _ = clip(SGD(1.0), bound).update(np.zeros_like(g), g, {}, 0)
    np.testing.assert_allclose(new, -parameter.grad.numpy(), rtol=2e-6 * (clip is ClipNorm))


def test_slices_step_alike_when_the_norm_is_added_up():
    runs.check_pure(ClipNorm(Adam(0.1), 0.5))
    runs.check_joint_slices(ClipNorm(Adam(0.1), 0.5))
    runs.check_joint_slices(ClipNorm(ClipValue(Adam(0.1), 0.2), 0.5))


def test_a_method_with_sums_of_its_own_is_not_cut():
    assert ClipNorm(LAMB(), 0.5).on(runs.LAYOUT).part([slice(0, 3)]) is None


def test_zero_and_nonfinite_gradients():
    method, w = ClipNorm(SGD(1.0), 1.0), np.zeros(2, np.float32)
    np.testing.assert_array_equal(method.update(w, w, {}, 0)[0], w)
    new, _ = method.update(w, np.array([np.nan, 1], np.float32), {}, 0)
    assert np.isnan(new[0])
    new, _ = method.update(w, np.array([np.inf, 1], np.float32), {}, 0)
    assert np.isnan(new[0])


def test_the_rows_of_tables_count_in_the_norm():
    gradient, rows = np.full(4, 3, np.float32), Rows.all_of(np.full((4, 4), 4, np.float32))
    whole = np.concatenate([gradient, rows.values.ravel()])
    method = ClipNorm(SGD(1.0), 2.0)
    expected, _ = method.update(np.zeros(20, np.float32), whole, {}, 0)

    terms = method.terms(gradient, gradient, {}, 0)
    known, table = method.knowing(terms, method.row_terms([rows])), np.zeros((4, 4), np.float32)
    weights, _ = known.update(np.zeros(4, np.float32), gradient, {}, 0)
    known.update_rows("table", table, rows, {}, 0)
    np.testing.assert_allclose(np.concatenate([weights, table.ravel()]), expected, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(expected), 2, rtol=1e-6)


def test_rows_are_clipped_too():
    table = np.zeros((3, 2), np.float32)
    rows = Rows(np.array([2]), np.array([[-9, 1]], np.float32), (3, 2))
    ClipValue(SGD(1.0), 1.5).update_rows("table", table, rows, {}, 0, 0.5)
    np.testing.assert_array_equal(table, [[0, 0], [0, 0], [1.5, -0.5]])
