"""Reference loops of recurrent operations in float64, and arguments for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.daskdl.gradients import normal

#: Sums that a step computes for each number of the state.
SUMS = {"lstm": 4, "gru": 3, "rnn": 1}


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def arguments(
    operation: str, n: int = 2, steps: int = 3, features: int = 3, channels: int = 4
) -> list[np.ndarray]:
    """Return all arguments of an operation in float64; an LSTM has peepholes."""
    k = SUMS[operation] * channels
    states = [normal(n, channels, seed=i) for i in range(2 if operation == "lstm" else 1)]
    weights = [normal(k, features, seed=3) / 2, normal(k, channels, seed=4) / 2, normal(k, seed=5)]
    last = {"lstm": [normal(3, channels, seed=6)], "gru": [normal(k, seed=7)], "rnn": []}
    return [normal(n, steps, features), *states, *weights, *last[operation]]


def convlstm_arguments(n=2, steps=3, size=(5, 6), inputs=3, channels=2, kernel=3):
    """Return x, h, c, weight_input, weight_state, bias in float64."""
    k = (kernel, kernel)
    return (
        normal(n, steps, *size, inputs) if inputs else None,
        normal(n, *size, channels, seed=1) / 2,
        normal(n, *size, channels, seed=2) / 2,
        normal(4 * channels, *k, inputs, seed=3) / 4 if inputs else None,
        normal(4 * channels, *k, channels, seed=4) / 4,
        normal(4 * channels, seed=5),
    )


def trajgru_arguments(
    n=2, steps=3, size=(5, 6), inputs=3, channels=2, n_links=3, hidden=4, kernel=3
):
    """Return all arguments in float64, with flows of about a pixel."""
    k = (kernel, kernel)
    shapes = [
        *((n, steps, *size, inputs), (n, *size, channels), (3 * channels, *k, inputs)),
        *((3 * channels, n_links * channels), (3 * channels,), (3 * channels,)),
        *((hidden, *k, inputs), (hidden, *k, channels), (hidden,)),
        *((2 * n_links, *k, hidden), (2 * n_links,)),
    ]
    arrays = [normal(*shape, seed=i) / 4 for i, shape in enumerate(shapes)]
    arrays[-1] *= 4
    if not inputs:
        arrays[0] = arrays[2] = arrays[6] = None
    return arrays


def lstm_step(x, h, c, wi, ws, bias, peepholes):
    """Return output and state."""
    i, f, g, o = np.split(x @ wi.T + h @ ws.T + bias, 4)
    p = np.zeros((3, c.size)) if peepholes is None else peepholes
    new = sigmoid(f + p[1] * c) * c + sigmoid(i + p[0] * c) * np.tanh(g)
    return sigmoid(o + p[2] * new) * np.tanh(new), new


def gru_step(x, h, wi, ws, bias_input, bias_state):
    """Return the state."""
    (r, z, n), (sr, sz, sn) = (
        np.split(part, 3) for part in (x @ wi.T + bias_input, h @ ws.T + bias_state)
    )
    z = sigmoid(z + sz)
    return ((1 - z) * np.tanh(n + sigmoid(r + sr) * sn) + z * h,)


def rnn_step(x, h, wi, ws, bias):
    """Return the state."""
    return (np.tanh(x @ wi.T + h @ ws.T + bias),)


STEPS: dict[str, tuple[Callable[..., tuple[np.ndarray, ...]], int]] = {
    "lstm": (lstm_step, 2),
    "gru": (gru_step, 1),
    "rnn": (rnn_step, 1),
}


def loop(operation, x, *rest, lengths=None, reverse=False):
    """Return outputs and final states, sample by sample and step by step."""
    step, n_states = STEPS[operation]
    states, weights = rest[:n_states], rest[n_states:]
    outputs = np.zeros((*x.shape[:2], states[0].shape[1]))
    final = [s.copy() for s in states]
    for sample in range(len(x)):
        length = x.shape[1] if lengths is None else lengths[sample]
        current = tuple(s[sample] for s in states)
        for t in reversed(range(length)) if reverse else range(length):
            current = step(x[sample, t], *current, *weights)
            outputs[sample, t] = current[0]
        for state, value in zip(final, current, strict=True):
            state[sample] = value
    return (outputs, *final)
