"""An LSTM: its cell in one pass over memory, and all steps of a sequence, forward and backward.

Along the last axis, the gates' order is input, forget, cell, output, as in PyTorch.
S. Hochreiter and J. Schmidhuber, Long Short-Term Memory, Neural Computation 9 (1997);
F. Gers et al., Learning to Forget, Neural Computation 12 (2000); peepholes: F. Gers and
J. Schmidhuber, Recurrent Nets that Time and Count, IJCNN 2000.
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


def lstm_cell(z: Array, bias: Array, c: Array, new: Array, h: Array) -> None:
    """Advance an LSTM cell by a step from state ``c`` (rows, C) to ``new``; write its output to h.

    ``z`` (rows, 4 * C) are the gates' sums without bias; they become the gates' values.
    """
    none = np.empty((0, 0), z.dtype)
    over_rows(lstm_forward, (z, c, new, h), grain.CELL_ROWS, bias, none)


def lstm_cell_gradient(gates: Array, c: Array, new: Array, dh: Array, dc: Array) -> None:
    """Propagate the gradient back through one step, in place.

    ``gates`` of :func:`lstm_cell` become the gradient to ``z``. ``dc``, the gradient to the state
    after the step, becomes that to the state before it. ``dh`` (rows, C) is that to the output.
    """
    none = np.empty((0, 0), gates.dtype)
    over_rows(lstm_backward, (gates, c, new, dh, dc), grain.CELL_ROWS, none)


@fusedjit
def lstm_forward(z, c, new, h, bias, peepholes):
    """Advance cells, with peepholes (3, C) to input, forget and output gate, or (0, 0) for none."""
    n = c.shape[1]
    half = z.dtype.type(0.5)
    for r in range(z.shape[0]):
        sums, before, after, output = z[r], c[r], new[r], h[r]
        zi, zf, zg, zo = sums[:n], sums[n : 2 * n], sums[2 * n : 3 * n], sums[3 * n :]
        for k in range(4 * n):
            sums[k] += bias[k]
        if peepholes.shape[0]:
            for k in range(n):
                zi[k] += peepholes[0, k] * before[k]
            for k in range(n):
                zf[k] += peepholes[1, k] * before[k]
        for k in range(n):
            zi[k] = half + half * tanh(half * zi[k])
            zf[k] = half + half * tanh(half * zf[k])
        for k in range(n):
            zg[k] = tanh(zg[k])
        for k in range(n):
            after[k] = zf[k] * before[k] + zi[k] * zg[k]
        if peepholes.shape[0]:
            for k in range(n):
                zo[k] += peepholes[2, k] * after[k]
        for k in range(n):
            zo[k] = half + half * tanh(half * zo[k])
            output[k] = zo[k] * tanh(after[k])


@fusedjit
def lstm_backward(gates, c, new, dh, dc, peepholes):
    """Propagate gradients back through a step, with peepholes (3, C), or (0, 0) for none."""
    n = c.shape[1]
    one = gates.dtype.type(1)
    for r in range(gates.shape[0]):
        gi, gf = gates[r, :n], gates[r, n : 2 * n]
        gg, go = gates[r, 2 * n : 3 * n], gates[r, 3 * n :]
        before, after, up, state = c[r], new[r], dh[r], dc[r]
        if peepholes.shape[0]:
            for k in range(n):
                state[k] += peepholes[2, k] * up[k] * tanh(after[k]) * go[k] * (one - go[k])
        for k in range(n):
            i, f, g, o, t = gi[k], gf[k], gg[k], go[k], tanh(after[k])
            d = state[k] + up[k] * o * (one - t * t)
            go[k] = up[k] * t * o * (one - o)
            gi[k] = d * g * i * (one - i)
            gg[k] = d * i * (one - g * g)
            gf[k] = d * before[k] * f * (one - f)
            state[k] = d * f
        if peepholes.shape[0]:
            for k in range(n):
                state[k] += peepholes[0, k] * gi[k] + peepholes[1, k] * gf[k]


@jit
def forward(gates, panels, bias, peepholes, states, outputs, lengths, reverse, which, start, stop):
    """Write states and outputs, both (T + 1, N, C); ``gates`` change from sums to values."""
    steps, room = gates.shape[0], room_for(stop - start, gates)
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        before, after = (t + 1, t) if reverse else (t, t + 1)
        z, c, new = gates[t, start:stop], states[before, start:stop], states[after, start:stop]
        last, h = outputs[before, start:stop], outputs[after, start:stop]
        product(last, panels, z, True, room, following(gates, t, reverse, start, stop))
        lstm_forward(z, c, new, h, bias, peepholes)
        for r in range(stop - start):
            if t >= lengths[start + r]:
                new[r], h[r] = c[r], last[r]


@jit
def backward(
    gates, panels, peepholes, states, d_outputs, lengths, reverse, dh, dc, which, start, stop
):
    """Propagate gradients back through all steps, see :mod:`daskdl.kernels.recurrent.rnn`."""
    steps, room = gates.shape[0], room_for(stop - start, gates)
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        before, after = (t + 1, t) if reverse else (t, t + 1)
        r = start
        while r < stop:
            if t >= lengths[r]:
                gates[t, r] = 0
                r += 1
                continue
            end = r + 1
            while end < stop and t < lengths[end]:
                end += 1
            going = slice(r, end)  # adjacent samples that have not ended
            if d_outputs.shape[0]:
                dh[going] += d_outputs[t, going]
            lstm_backward(
                gates[t, going], states[before, going], states[after, going], dh[going],
                dc[going], peepholes,
            )  # fmt: skip
            dh[going] = 0
            r = end
        soon = following(gates, t, not reverse, start, stop)
        product(gates[t, start:stop], panels, dh[start:stop], True, room, soon)
