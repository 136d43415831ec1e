"""Kernels of recurrent layers over sequences, and the LSTM cell against its formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.recurrent import gru, lstm, rnn
from daskdl.kernels.runtime.grain import CELL_ROWS
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.recurrence import arguments, loop, sigmoid

N, STEPS, CHANNELS = 5, 6, 9


def run(x, h, wi, ws, bias, lengths, reverse, relu):
    """Return the states around all steps."""
    sums = np.ascontiguousarray((x @ wi.T).swapaxes(0, 1), "f4")
    states = np.full((STEPS + 1, N, CHANNELS), np.nan, "f4")
    states[STEPS if reverse else 0] = h
    weight = np.array(ws.T, "f4", order="C")
    rest = bias.astype("f4"), states, lengths, reverse, relu
    rnn.run(rnn.forward, "float32", sums, weight, *rest)
    return states


@pytest.mark.parametrize("reverse", [False, True])
def test_loop_in_float32(reverse):
    given = arguments("rnn", N, STEPS, 3, CHANNELS)
    lengths = np.array([6, 0, 3, 5, 1])
    states = run(*given, lengths, reverse, False)
    expected, h = loop("rnn", *given, lengths=lengths, reverse=reverse)
    after = (states[:-1] if reverse else states[1:]).swapaxes(0, 1)
    went_on = np.arange(STEPS) < lengths[:, None]
    np.testing.assert_allclose(after[went_on], expected[went_on], atol=2e-6)
    np.testing.assert_allclose(states[0 if reverse else STEPS], h, atol=2e-6)


def test_relu_lets_nan_and_infinity_through():
    x, h, wi, ws, bias = arguments("rnn", N, STEPS, 3, CHANNELS)
    bias[:3] = np.nan, np.inf, -np.inf
    states = run(x, h, wi, ws, bias, np.full(N, STEPS), False, True)
    assert np.isnan(states[1, :, 0]).all()
    assert (states[1, :, 1] == np.inf).all()
    assert (states[1, :, 2] == 0).all()
    assert np.isfinite(states[1, :, 3:]).all()


@pytest.mark.slow
def test_relus_gradient_is_that_of_positive_states():
    states = np.array([[[9.0, 9, 9]], [[0.0, 2, np.nan]]], "f4")
    d_sums, dh = np.full((1, 1, 3), 7, "f4"), np.array([[1.0, 2, 3]], "f4")
    weight, lengths = np.eye(3, dtype="f4"), np.ones(1, np.int64)
    none = np.empty((0, 1, 3), "f4")
    rest = states, none, lengths, False, True, dh
    d_bias = rnn.run_back(rnn.backward, "float32", d_sums, weight, *rest)
    np.testing.assert_array_equal(d_sums[0], [[0, 2, 3]])
    np.testing.assert_array_equal(dh, [[0, 2, 3]])
    np.testing.assert_array_equal(d_bias, [0, 2, 3])


def run_lstm(x, h, c, wi, ws, bias, peepholes, lengths, reverse):
    """Return gates, states, outputs."""
    gates = np.ascontiguousarray((x @ wi.T).swapaxes(0, 1), "f4")
    states, outputs = (np.full((STEPS + 1, N, CHANNELS), np.nan, "f4") for _ in range(2))
    first = STEPS if reverse else 0
    states[first], outputs[first] = c, h
    weight, bias, peepholes = (np.array(a, "f4", order="C") for a in (ws.T, bias, peepholes))
    rest = bias, peepholes, states, outputs, lengths, reverse
    rnn.run(lstm.forward, "float32", gates, weight, *rest)
    return gates, states, outputs


@pytest.mark.parametrize("reverse", [False, True])
def test_states_lie_around_the_steps(reverse):
    given = arguments("lstm", N, STEPS, 3, CHANNELS)
    lengths = np.array([6, 0, 3, 5, 1])
    _, states, outputs = run_lstm(*given, lengths, reverse)
    expected, h, c = loop("lstm", *given, lengths=lengths, reverse=reverse)
    after = (outputs[:-1] if reverse else outputs[1:]).swapaxes(0, 1)
    went_on = np.arange(STEPS) < lengths[:, None]
    np.testing.assert_allclose(after[went_on], expected[went_on], atol=2e-6)
    last = 0 if reverse else STEPS
    np.testing.assert_allclose(outputs[last], h, atol=2e-6)
    np.testing.assert_allclose(states[last], c, atol=4e-6)


def test_a_sample_that_has_ended_passes_its_gradient_on():
    given = arguments("lstm", N, STEPS, 3, CHANNELS)
    lengths = np.zeros(N, np.int64)
    gates, states, _ = run_lstm(*given, lengths, False)
    ws, peepholes = (np.array(a, "f4") for a in (given[4], given[6]))
    dh, dc = np.ones((2, N, CHANNELS), "f4")
    d_outputs = np.full((STEPS, N, CHANNELS), 9, "f4")
    rest = peepholes, states, d_outputs, lengths, False, dh, dc
    d_bias = rnn.run_back(lstm.backward, "float32", gates, ws, *rest)
    assert (dh == 1).all()
    assert (dc == 1).all()
    assert not gates.any()
    assert not d_bias.any()


def test_two_threads_agree_with_one():
    given = arguments("lstm", N, STEPS, 3, CHANNELS)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            results.append(run_lstm(*given, np.full(N, STEPS), False))
    np.testing.assert_allclose(*(outputs for _, _, outputs in results), atol=1e-6)


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
def test_loop_in_float32_of_gru(reverse):
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
    weight = np.array(ws.T, "f4", order="C")
    rnn.run(gru.forward, "float32", gates, weight, bias, states, lengths, reverse)
    after = (states[:-1] if reverse else states[1:]).swapaxes(0, 1)
    went_on = np.arange(steps) < lengths[:, None]
    np.testing.assert_allclose(after[went_on], expected[0][went_on], atol=2e-6)
    np.testing.assert_allclose(states[0 if reverse else steps], expected[1], atol=2e-6)


def reference_of_cell(z, c):
    """Return output and state by the textbook's formulas."""
    i, f, g, o = np.split(z, 4, axis=1)
    new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(new), new


def cell(z, c, bias=None):
    """Return output and state after a step; ``z`` becomes the gates' values."""
    h, new = np.full_like(c, np.nan), np.full_like(c, np.nan)
    lstm.lstm_cell(z, np.zeros_like(z[0]) if bias is None else bias, c, new, h)
    return h, new


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(rows=st.integers(1, 9), channels=st.integers(1, 20))
def test_cell_is_the_textbooks(dtype, rows, channels):
    z, c = draw(rows, channels, dtype)
    bias = z[-1] / 2
    h, new = cell(z.copy(), c, bias)
    expected_both = reference_of_cell((z + bias).astype(float), c.astype(float))
    for result, expected in zip((h, new), expected_both, strict=True):
        np.testing.assert_allclose(result, expected, atol=8 * np.finfo(dtype).eps, rtol=0)


def test_gates_replace_their_sums():
    z, c = draw(5, 3)
    kept = z.copy()
    cell(z, c)
    i, f, g, o = np.split(kept, 4, axis=1)
    np.testing.assert_allclose(z, np.hstack([sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)]))


@given(rows=st.integers(1, 5), channels=st.integers(1, 6))
def test_gradient_is_the_slope_of_cell(rows, channels):
    z, c = draw(rows, channels)
    rng = np.random.default_rng(7)
    dh, dc, toward_c = rng.normal(size=(3, *c.shape))
    toward_z = rng.normal(size=z.shape)

    values = z.copy()
    _, new = cell(values, c)
    d_state = dc.copy()
    lstm.lstm_cell_gradient(values, c, new, dh, d_state)
    analytic = (values * toward_z).sum() + (d_state * toward_c).sum()

    def value(step):
        h, state = reference_of_cell(z + step * toward_z, c + step * toward_c)
        return (h * dh).sum() + (state * dc).sum()

    assert (value(1e-6) - value(-1e-6)) / 2e-6 == pytest.approx(analytic, rel=1e-6, abs=1e-7)


def test_two_threads_give_the_bits_of_one_of_cell():
    z, c = draw(3 * CELL_ROWS, 4, np.float32)
    results = []
    for n in (1, 2):
        with thread_budget(n):
            values = z.copy()
            h, new = cell(values, c)
            back, d_state = values.copy(), c.copy()
            lstm.lstm_cell_gradient(back, c, new, h, d_state)
            results.append([values, h, new, back, d_state])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_saturated_gates_stay_finite():
    z = np.full((2, 8), 1e30, np.float32)
    z[1] = -1e30
    h, new = cell(z, np.ones((2, 2), np.float32))
    np.testing.assert_allclose(new, [[2, 2], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(h, [[np.tanh(2)] * 2, [0, 0]], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [3, 16])
def test_nan_in_any_gate_shows_in_the_output(dtype, channels):
    z = np.zeros((5 * channels, 4 * channels), dtype)
    c = np.ones((5 * channels, channels), dtype)
    np.fill_diagonal(z, np.nan)
    np.fill_diagonal(c[4 * channels :], np.nan)
    h, _ = cell(z, c)
    rows = np.arange(5 * channels)
    assert np.isnan(h[rows, rows % channels]).all()
    assert np.isnan(h).sum() == 5 * channels
