"""Cells of recurrent layers and links along trajectories, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.recurrent import gru, lstm, rnn
from daskdl.kernels.recurrent import trajgru as links
from daskdl.kernels.runtime.grain import CELL_ROWS
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.budgets import same_bits
from tests.daskdl.recurrence import sigmoid


def test_relu_lets_nan_and_infinity_through():
    sums, weight = np.zeros((1, 2, 4), "f4"), np.eye(4, dtype="f4")
    states, bias = np.zeros((2, 2, 4), "f4"), np.array([np.nan, np.inf, -np.inf, 1], "f4")
    rnn.run(rnn.forward, "float32", sums, weight, bias, states, np.ones(2, int), False, True)
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

    def step():
        values, new, dh = gates.copy(), np.empty_like(h), h.copy()
        gru.gru_cell(values, gates[0], slope, h, new)
        kept = values.copy()
        gru.gru_cell_gradient(values, slope, h, dh)
        return new, kept, values, dh

    same_bits(step)


@pytest.mark.parametrize("slope", [gru.TANH, 0.2])
def test_nan_in_any_sum_shows(slope):
    gates, h = np.ones((12, 12), np.float32), np.ones((12, 3), np.float32)
    np.fill_diagonal(gates, np.nan)
    new = np.zeros_like(h)
    gru.gru_cell(gates, np.zeros(12, np.float32), slope, h, new)
    assert (np.isnan(new) == np.tile(np.eye(3, dtype=bool), (4, 1))).all()


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

    def step():
        values = z.copy()
        h, new = cell(values, c)
        back, d_state = values.copy(), c.copy()
        lstm.lstm_cell_gradient(back, c, new, h, d_state)
        return values, h, new, back, d_state

    same_bits(step)


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


sides = st.integers(1, 6)


def hats(n, at):
    """Return the weight of each of n pixels at a position: max(0, 1 - distance)."""
    return np.maximum(0, 1 - np.abs(np.arange(n) - at))


def samples(image, flows):
    """Return the samples (pixels, L * C) by the paper's sum over the whole image."""
    n, height, width, channels = image.shape
    n_links = flows.shape[3] // 2
    result = np.zeros((n, height, width, n_links, channels))
    for s, i, j, link in np.ndindex(result.shape[:4]):
        across, down = flows[s, i, j, 2 * link : 2 * link + 2]
        weights = np.outer(hats(height, i + down), hats(width, j + across))
        result[s, i, j, link] = np.einsum("yx,yxc->c", weights, image[s])
    return result.reshape(-1, n_links * channels)


def drawn(n, height, width, channels, n_links, k, dtype=np.float64):
    rng = np.random.default_rng([n, height, width, channels])
    image = rng.normal(size=(n, height, width, channels))
    flows = 2 * rng.normal(size=(n, height, width, 2 * n_links))
    weight = rng.normal(size=(n_links * channels, k))
    return [a.astype(dtype) for a in (image, flows, weight)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(n=st.integers(0, 3), height=sides, width=sides, channels=st.integers(1, 9))
def test_projection_is_the_papers_sum(dtype, n, height, width, channels):
    image, flows, weight = drawn(n, height, width, channels, 2, 3, dtype)
    sums = np.ones((n * height * width, 5), dtype)
    links.project(image, flows, weight, sums)
    expected = 1 + samples(image.astype(float), flows.astype(float)) @ weight
    np.testing.assert_allclose(sums[:, 2:], expected, atol=500 * np.finfo(dtype).eps)
    assert (sums[:, :2] == 1).all()


@given(n=st.integers(1, 3), height=sides, width=sides, channels=st.integers(1, 5))
def test_gradient_of_links_is_the_slope(n, height, width, channels):
    image, flows, weight = arrays = drawn(n, height, width, channels, 2, 3)
    rng = np.random.default_rng(1)
    d_sums = rng.normal(size=(n * height * width, 4))
    toward = [rng.normal(size=a.shape) for a in arrays]
    d_image = np.zeros_like(image)
    d_flows, d_weight = links.project_gradient(
        image, flows, np.ascontiguousarray(weight.T), d_sums, d_image
    )
    gradients = (d_image, d_flows, d_weight.T)
    analytic = sum((d * t).sum() for d, t in zip(gradients, toward, strict=True))

    def value(step):
        a, b, c = (x + step * t for x, t in zip(arrays, toward, strict=True))
        return (samples(a, b) @ c * d_sums[:, 1:]).sum()

    slope = (value(1e-7) - value(-1e-7)) / 2e-7
    assert slope == pytest.approx(analytic, rel=1e-5, abs=1e-5)


def test_two_threads_agree_with_one(monkeypatch):
    monkeypatch.setattr(links, "BLOCK", 1)  # so that parts are of 16 pixels
    image, flows, weight = drawn(2, 5, 7, 3, 2, 4)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            sums, d_image = np.zeros((70, 4)), np.ones_like(image)
            links.project(image, flows, weight, sums)
            gradients = links.project_gradient(
                image, flows, np.ascontiguousarray(weight.T), sums, d_image
            )
        results.append([sums, d_image, *gradients])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-10)


@pytest.mark.slow
def test_far_away_is_zero_and_not_a_number_shows():
    image = np.ones((1, 3, 3, 2), np.float32)
    flows = np.zeros((1, 3, 3, 2), np.float32)
    flows[0, 0, 0], flows[0, 0, 1], flows[0, 0, 2] = 1e30, -np.inf, np.nan
    flows[0, 1, 0, 0], flows[0, 1, 1, 1], flows[0, 1, 2] = -1, 2, (1, -1)
    sums = np.zeros((9, 2), np.float32)
    links.project(image, flows, np.eye(2, dtype="f4"), sums)
    np.testing.assert_array_equal(sums[:, 0], [0, 0, np.nan, 0, 0, 0, 1, 1, 1])
    d_image = np.zeros_like(image)
    d_flows, _ = links.project_gradient(image, flows, np.eye(2, dtype="f4"), sums, d_image)
    assert not d_flows[0, 0, :2].any()
    assert np.isnan(d_flows[0, 0, 2]).all()
