"""The LSTM's loop over steps, in float32, time-major and in place."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.recurrent import lstm
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.recurrence import arguments, loop

N, STEPS, CHANNELS = 5, 6, 9


def run(x, h, c, wi, ws, bias, peepholes, lengths, reverse):
    """Return gates, states, outputs."""
    gates = np.ascontiguousarray((x @ wi.T).swapaxes(0, 1), "f4")
    states, outputs = (np.full((STEPS + 1, N, CHANNELS), np.nan, "f4") for _ in range(2))
    first = STEPS if reverse else 0
    states[first], outputs[first] = c, h
    weight, bias, peepholes = (np.array(a, "f4", order="C") for a in (ws.T, bias, peepholes))
    lstm.forward(gates, weight, bias, peepholes, states, outputs, lengths, reverse)
    return gates, states, outputs


@pytest.mark.parametrize("reverse", [False, True])
def test_states_lie_around_the_steps(reverse):
    given = arguments("lstm", N, STEPS, 3, CHANNELS)
    lengths = np.array([6, 0, 3, 5, 1])
    _, states, outputs = run(*given, lengths, reverse)
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
    gates, states, _ = run(*given, lengths, False)
    ws, peepholes = (np.array(a, "f4") for a in (given[4], given[6]))
    dh, dc = np.ones((2, N, CHANNELS), "f4")
    d_outputs = np.full((STEPS, N, CHANNELS), 9, "f4")
    d_bias = lstm.backward(gates, ws, peepholes, states, d_outputs, lengths, False, dh, dc)
    assert (dh == 1).all()
    assert (dc == 1).all()
    assert not gates.any()
    assert not d_bias.any()


def test_two_threads_agree_with_one():
    given = arguments("lstm", N, STEPS, 3, CHANNELS)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            results.append(run(*given, np.full(N, STEPS), False))
    np.testing.assert_allclose(*(outputs for _, _, outputs in results), atol=1e-6)
