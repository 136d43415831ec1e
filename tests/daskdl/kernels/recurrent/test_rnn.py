"""The simple RNN's loop over steps, in float32."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.recurrent import rnn
from tests.daskdl.recurrence import arguments, loop

N, STEPS, CHANNELS = 5, 6, 9


def run(x, h, wi, ws, bias, lengths, reverse, relu):
    """Return the states around all steps."""
    sums = np.ascontiguousarray((x @ wi.T).swapaxes(0, 1), "f4")
    states = np.full((STEPS + 1, N, CHANNELS), np.nan, "f4")
    states[STEPS if reverse else 0] = h
    weight = np.array(ws.T, "f4", order="C")
    rnn.forward(sums, weight, bias.astype("f4"), states, lengths, reverse, relu)
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
    d_bias = rnn.backward(d_sums, weight, states, none, lengths, False, True, dh)
    np.testing.assert_array_equal(d_sums[0], [[0, 2, 3]])
    np.testing.assert_array_equal(dh, [[0, 2, 3]])
    np.testing.assert_array_equal(d_bias, [0, 2, 3])
