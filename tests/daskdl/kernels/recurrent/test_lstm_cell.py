"""The LSTM cell against its formulas, and its tanh against the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.recurrent import lstm_cell as gates
from daskdl.kernels.runtime.grain import CELL_ROWS
from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.threads import thread_budget


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference(z, c):
    """Return output and state by the textbook's formulas."""
    i, f, g, o = np.split(z, 4, axis=1)
    new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(new), new


def cell(z, c, bias=None):
    """Return output and state after a step; ``z`` becomes the gates' values."""
    h, new = np.full_like(c, np.nan), np.full_like(c, np.nan)
    gates.lstm_cell(z, np.zeros_like(z[0]) if bias is None else bias, c, new, h)
    return h, new


def draw(rows, channels, dtype=np.float64):
    rng = np.random.default_rng([rows, channels])
    return [rng.normal(size=(rows, n)).astype(dtype) for n in (4 * channels, channels)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(rows=st.integers(1, 9), channels=st.integers(1, 20))
def test_cell_is_the_textbooks(dtype, rows, channels):
    z, c = draw(rows, channels, dtype)
    bias = z[-1] / 2
    h, new = cell(z.copy(), c, bias)
    expected_both = reference((z + bias).astype(float), c.astype(float))
    for found, expected in zip((h, new), expected_both, strict=True):
        np.testing.assert_allclose(found, expected, atol=8 * np.finfo(dtype).eps, rtol=0)


def test_gates_replace_their_sums():
    z, c = draw(5, 3)
    kept = z.copy()
    cell(z, c)
    i, f, g, o = np.split(kept, 4, axis=1)
    np.testing.assert_allclose(z, np.hstack([sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)]))


@given(rows=st.integers(1, 5), channels=st.integers(1, 6))
def test_gradient_is_the_slope(rows, channels):
    z, c = draw(rows, channels)
    rng = np.random.default_rng(7)
    dh, dc, toward_c = rng.normal(size=(3, *c.shape))
    toward_z = rng.normal(size=z.shape)

    values = z.copy()
    _, new = cell(values, c)
    d_state = dc.copy()
    gates.lstm_cell_gradient(values, c, new, dh, d_state)
    analytic = (values * toward_z).sum() + (d_state * toward_c).sum()

    def value(step):
        h, state = reference(z + step * toward_z, c + step * toward_c)
        return (h * dh).sum() + (state * dc).sum()

    assert (value(1e-6) - value(-1e-6)) / 2e-6 == pytest.approx(analytic, rel=1e-6, abs=1e-7)


def test_two_threads_give_the_bits_of_one():
    z, c = draw(3 * CELL_ROWS, 4, np.float32)
    results = []
    for n in (1, 2):
        with thread_budget(n):
            values = z.copy()
            h, new = cell(values, c)
            back, d_state = values.copy(), c.copy()
            gates.lstm_cell_gradient(back, c, new, h, d_state)
            results.append([values, h, new, back, d_state])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@fastjit
def fast_tanh(x, y):
    for k in range(x.size):
        y[k] = gates.tanh(x[k])


@jit
def exact_tanh(x, y):
    for k in range(x.size):
        y[k] = gates.tanh(x[k])


@pytest.mark.slow
def test_tanh_of_float32_is_right_to_4e_7_and_never_above_one():
    x = np.concatenate([np.linspace(-12, 12, 100_001), np.geomspace(1e-30, 1, 1001)]).astype("f4")
    y = np.empty_like(x)
    fast_tanh(x, y)
    exact = np.tanh(x.astype(float))
    nonzero = x != 0
    assert (np.abs(y / np.where(nonzero, exact, 1) - 1)[nonzero]).max() < 4e-7
    assert np.abs(y).max() <= 1
    assert (y[~nonzero] == 0).all()


def test_tanh_of_float64_is_libms():
    x = np.linspace(-5, 5, 101)
    y = np.empty_like(x)
    exact_tanh(x, y)
    np.testing.assert_allclose(y, np.tanh(x), rtol=1e-15)


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
