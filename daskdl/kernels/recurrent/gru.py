"""A GRU: its cell in one pass over memory, and all steps of a sequence, forward and backward.

K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, arXiv 1406.1078, with the
reset gate after the matrix product, as in PyTorch. The last axis of ``gates`` holds four sums:
candidate, reset, update, and the state's part of the candidate, which the reset gate scales. The
input adds to the first three, the state to the last three, each by one matrix product.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.packed import following, product, room_for
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.elementary import tanh
from daskdl.kernels.runtime.jit import fusedjit, jit
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[np.floating]

#: A ``slope`` that selects tanh for the candidate, not a leaky ReLU.
TANH = -1.0


def gru_cell(gates: Array, bias: Array, slope: float, h: Array, new: Array) -> None:
    """Advance a GRU by one step from its state ``h`` (rows, C); write the state to ``new``.

    ``gates`` (rows, 4 * C) are sums without bias. Candidate, reset and update replace the first
    three; the fourth gets its bias. ``slope`` is the candidate's leaky ReLU's, at least 0, or
    ``TANH``.
    """
    over_rows(_cell, (gates, h, new), grain.CELL_ROWS, bias, slope)


def gru_cell_gradient(gates: Array, slope: float, h: Array, dh: Array) -> None:
    """Propagate the gradient back through one step, in place.

    ``gates`` of :func:`gru_cell` become the gradients to the sums. ``dh``, the gradient to the
    state after the step, becomes that to the state before it, without the part through the gates.
    """
    over_rows(_cell_gradient, (gates, h, dh), grain.CELL_ROWS, slope)


@fusedjit
def _cell(gates, h, new, bias, slope):
    n = h.shape[1]
    half, zero, slope = gates.dtype.type(0.5), gates.dtype.type(0), gates.dtype.type(slope)
    for row in range(gates.shape[0]):
        sums, before, after = gates[row], h[row], new[row]
        candidate, reset = sums[:n], sums[n : 2 * n]
        update, part = sums[2 * n : 3 * n], sums[3 * n :]
        for k in range(4 * n):
            sums[k] += bias[k]
        for k in range(n):
            reset[k] = half + half * tanh(half * reset[k])
            update[k] = half + half * tanh(half * update[k])
        if slope < zero:
            for k in range(n):
                candidate[k] = tanh(candidate[k] + reset[k] * part[k])
        else:
            for k in range(n):
                total = candidate[k] + reset[k] * part[k]
                candidate[k] = slope * total if total < zero else total
        for k in range(n):
            after[k] = candidate[k] + update[k] * (before[k] - candidate[k])


@fusedjit
def _cell_gradient(gates, h, dh, slope):
    n = h.shape[1]
    one, zero, slope = gates.dtype.type(1), gates.dtype.type(0), gates.dtype.type(slope)
    for row in range(gates.shape[0]):
        values, before, up = gates[row], h[row], dh[row]
        candidate, reset = values[:n], values[n : 2 * n]
        update, part = values[2 * n : 3 * n], values[3 * n :]
        for k in range(n):
            c, r, z, q, d = candidate[k], reset[k], update[k], part[k], up[k]
            within = one - c * c
            if slope >= zero:
                within = one if c > zero else slope
            to_c = d * (one - z) * within
            candidate[k] = to_c
            update[k] = d * (before[k] - c) * z * (one - z)
            reset[k] = to_c * q * r * (one - r)
            part[k] = to_c * r
            up[k] = d * z


@jit
def forward(gates, panels, bias, states, lengths, reverse, which, start, stop):
    """Write the states; ``gates``, whose fourth sums may be anything, become the cell's values."""
    steps, n, room = gates.shape[0], states.shape[2], room_for(stop - start, gates)
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        before, after = (t + 1, t) if reverse else (t, t + 1)
        sums, h, new = gates[t, start:stop], states[before, start:stop], states[after, start:stop]
        sums[:, 3 * n :] = 0
        soon = following(gates, t, reverse, start, stop)
        product(h, panels, sums[:, n:], True, room, soon)
        _cell(sums, h, new, bias, TANH)
        for r in range(stop - start):
            if t >= lengths[start + r]:
                new[r] = h[r]


@jit
def backward(gates, panels, states, d_outputs, lengths, reverse, dh, which, start, stop):
    """Propagate gradients back through all steps, see :mod:`daskdl.kernels.recurrent.rnn`."""
    steps, n, room = gates.shape[0], states.shape[2], room_for(stop - start, gates)
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        before = t + 1 if reverse else t
        for r in range(start, stop):
            d, one = gates[t, r], slice(r, r + 1)
            if t < lengths[r]:
                if d_outputs.shape[0]:
                    dh[r] += d_outputs[t, r]
                _cell_gradient(gates[t, one], states[before, one], dh[one], TANH)
            else:
                d[:] = 0
        soon = following(gates, t, not reverse, start, stop)
        product(gates[t, start:stop][:, n:], panels, dh[start:stop], True, room, soon)
