"""Cells of recurrent layers and links along trajectories, against their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.recurrent import gru, lstm, rnn
from daskdl.kernels.recurrent import trajgru as links
from daskdl.kernels.runtime.grain import CELL_ROWS
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.gradients import same_bits


def test_relu_lets_nan_and_infinity_through():
    sums, weight = np.zeros((1, 2, 4), "f4"), np.eye(4, dtype="f4")
    states, bias = np.zeros((2, 2, 4), "f4"), np.array([np.nan, np.inf, -np.inf, 1], "f4")
    rnn.run(rnn.forward, "float32", sums, weight, bias, states, np.ones(2, int), False, True)
    assert np.isnan(states[1, :, 0]).all()
    assert (states[1, :, 1] == np.inf).all()
    assert (states[1, :, 2] == 0).all()
    assert np.isfinite(states[1, :, 3:]).all()


@pytest.mark.slow
def test_relu_passes_gradients_only_to_positive_states():
    states = np.array([[[9.0, 9, 9]], [[0.0, 2, np.nan]]], "f4")
    d_sums, dh = np.full((1, 1, 3), 7, "f4"), np.array([[1.0, 2, 3]], "f4")
    weight, lengths = np.eye(3, dtype="f4"), np.ones(1, np.int64)
    none = np.empty((0, 1, 3), "f4")
    rest = states, none, lengths, False, True, dh
    d_bias = rnn.run_back(rnn.backward, "float32", d_sums, weight, *rest)
    np.testing.assert_array_equal(d_sums[0], [[0, 2, 3]])
    np.testing.assert_array_equal(dh, [[0, 2, 3]])
    np.testing.assert_array_equal(d_bias, [0, 2, 3])


class Cell(NamedTuple):
    """The kernels of a step; tests/daskdl/ops compares their results with the formulas."""

    #: From sums, which become the gates' values, bias and state to results, the new state last.
    forward: Callable[..., list[np.ndarray]]
    #: From the gates' values, the state, the results and their slopes to the state's slope.
    backward: Callable[..., np.ndarray]


def lstm_forward(z, bias, c):
    h, new = np.full_like(c, np.nan), np.full_like(c, np.nan)
    lstm.lstm_cell(z, bias, c, new, h)
    return [h, new]


def lstm_backward(values, c, results, slopes):
    d_state = slopes[1].copy()
    lstm.lstm_cell_gradient(values, c, results[1], slopes[0], d_state)
    return d_state


def gru_of(slope):
    def forward(gates, bias, h):
        new = np.full_like(h, np.nan)
        gru.gru_cell(gates, bias, slope, h, new)
        return [new]

    def backward(values, h, results, slopes):
        dh = slopes[0].copy()
        gru.gru_cell_gradient(values, slope, h, dh)
        return dh

    return Cell(forward, backward)


CELLS = {
    "lstm": Cell(lstm_forward, lstm_backward), "gru": gru_of(gru.TANH),
    "gru of a ReLU": gru_of(0.0), "gru with a slope": gru_of(0.2),
}  # fmt: skip
each_cell = pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)


def draw(rows, channels, dtype=np.float64):
    rng = np.random.default_rng([rows, channels])
    return [rng.normal(size=(rows, n)).astype(dtype) for n in (4 * channels, channels)]


@each_cell
def test_two_threads_give_the_bits_of_one(cell):
    sums, state = draw(3 * CELL_ROWS, 4, np.float32)

    def step():
        values = sums.copy()
        results = cell.forward(values, sums[0], state)
        back = values.copy()
        return values, *results, back, cell.backward(back, state, results, results)

    same_bits(step)


@each_cell
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [3, 16])
def test_nan_in_any_sum_or_state_shows_in_its_channel(cell, dtype, channels):
    sums = np.zeros((5 * channels, 4 * channels), dtype)
    state = np.ones((5 * channels, channels), dtype)
    np.fill_diagonal(sums, np.nan)
    np.fill_diagonal(state[4 * channels :], np.nan)
    first = cell.forward(sums, np.zeros(4 * channels, dtype), state)[0]
    rows = np.arange(5 * channels)
    assert np.isnan(first[rows, rows % channels]).all()
    assert np.isnan(first).sum() == 5 * channels


def test_saturated_gates_stay_finite():
    z = np.full((2, 8), 1e30, np.float32)
    z[1] = -1e30
    h, new = lstm_forward(z, np.zeros(8, np.float32), np.ones((2, 2), np.float32))
    np.testing.assert_allclose(new, [[2, 2], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(h, [[np.tanh(2)] * 2, [0, 0]], atol=1e-6)


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


def test_parts_and_threads_agree_with_one(monkeypatch):
    image, flows, weight = drawn(2, 5, 7, 3, 2, 4)
    results = []
    for block, threads in ((links.BLOCK, 1), (1, 1), (1, 2)):
        monkeypatch.setattr(links, "BLOCK", block)  # 1 for parts of 16 pixels
        with thread_budget(threads):
            sums, d_image = np.zeros((70, 4)), np.ones_like(image)
            links.project(image, flows, weight, sums)
            gradients = links.project_gradient(
                image, flows, np.ascontiguousarray(weight.T), sums, d_image
            )
        results.append([sums, d_image, *gradients])
    for one, *others in zip(*results, strict=True):
        for other in others:
            np.testing.assert_allclose(other, one, atol=1e-10)


@pytest.mark.slow
def test_samples_far_away_are_zero_and_nan_shows():
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
