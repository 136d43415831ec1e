"""The GRU's cell against its formulas, its gradient against slopes, its loop in float32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.recurrent import gru
from daskdl.kernels.runtime.grain import CELL_ROWS
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.recurrence import arguments, loop, sigmoid

slopes = st.sampled_from([gru.TANH, 0.0, 0.2])


def reference(gates, slope, h):
    """Return the state after a step by the formulas."""
    new, reset, update, part = np.split(gates, 4, axis=1)
    new, update = new + sigmoid(reset) * part, sigmoid(update)
    new = np.tanh(new) if slope < 0 else np.where(new < 0, slope * new, new)
    return (1 - update) * new + update * h


def draw(rows, channels, dtype=np.float64):
    rng = np.random.default_rng([rows, channels])
    return [rng.normal(size=(rows, n)).astype(dtype) for n in (4 * channels, channels)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(rows=st.integers(0, 9), channels=st.integers(1, 20), slope=slopes)
def test_cell_follows_its_formulas(dtype, rows, channels, slope):
    gates, h = draw(rows, channels, dtype)
    bias = np.linspace(-1, 1, 4 * channels).astype(dtype)
    new, values = np.empty_like(h), gates.copy()
    gru.gru_cell(values, bias, slope, h, new)
    expected = reference(gates.astype(float) + bias, slope, h)
    np.testing.assert_allclose(new, expected, atol=10 * np.finfo(dtype).eps)


@given(rows=st.integers(1, 5), channels=st.integers(1, 6), slope=slopes)
def test_gradient_is_the_slope(rows, channels, slope):
    gates, h = draw(rows, channels)
    rng = np.random.default_rng(7)
    up, toward_h = rng.normal(size=(2, *h.shape))
    toward = rng.normal(size=gates.shape)
    values, dh = gates.copy(), up.copy()
    gru.gru_cell(values, np.zeros(4 * channels), slope, h, np.empty_like(h))
    gru.gru_cell_gradient(values, slope, h, dh)
    analytic = (values * toward).sum() + (dh * toward_h).sum()

    def value(step):
        return (reference(gates + step * toward, slope, h + step * toward_h) * up).sum()

    slope_ = (value(1e-6) - value(-1e-6)) / 2e-6
    assert slope_ == pytest.approx(analytic, rel=1e-6, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("slope", [gru.TANH, 0.2])
def test_two_threads_give_the_bits_of_one(slope):
    gates, h = draw(2 * CELL_ROWS + 1, 4, np.float32)
    results = []
    for n in (1, 2):
        with thread_budget(n):
            values, new, dh = gates.copy(), np.empty_like(h), h.copy()
            gru.gru_cell(values, gates[0], slope, h, new)
            kept = values.copy()
            gru.gru_cell_gradient(values, slope, h, dh)
            results.append([new, kept, values, dh])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("slope", [gru.TANH, 0.2])
def test_nan_in_any_sum_shows(slope):
    gates, h = np.ones((12, 12), np.float32), np.ones((12, 3), np.float32)
    np.fill_diagonal(gates, np.nan)
    new = np.zeros_like(h)
    gru.gru_cell(gates, np.zeros(12, np.float32), slope, h, new)
    assert (np.isnan(new) == np.tile(np.eye(3, dtype=bool), (4, 1))).all()


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_loop_in_float32(reverse):
    n, steps, channels = 5, 6, 9
    x, h, wi, ws, bias_input, bias_state = arguments("gru", n, steps, 3, channels)
    lengths = np.array([6, 0, 3, 5, 1])
    expected = loop("gru", x, h, wi, ws, bias_input, bias_state, lengths=lengths, reverse=reverse)
    gates = np.full((steps, n, 4 * channels), np.nan, "f4")
    gates[..., : 3 * channels] = np.roll((x @ wi.T).swapaxes(0, 1), channels, axis=2)
    bias = np.zeros(4 * channels, "f4")
    bias[: 3 * channels] = np.roll(bias_input, channels)
    bias[channels:] += bias_state.astype("f4")
    states = np.full((steps + 1, n, channels), np.nan, "f4")
    states[steps if reverse else 0] = h
    gru.forward(gates, np.array(ws.T, "f4", order="C"), bias, states, lengths, reverse)
    after = (states[:-1] if reverse else states[1:]).swapaxes(0, 1)
    went_on = np.arange(steps) < lengths[:, None]
    np.testing.assert_allclose(after[went_on], expected[0][went_on], atol=2e-6)
    np.testing.assert_allclose(states[0 if reverse else steps], expected[1], atol=2e-6)
