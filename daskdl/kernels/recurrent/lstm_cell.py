"""The cell of an LSTM, its gates and state in one pass over memory, forward and backward.

Gates lie in the order input, forget, cell, output along the last axis, as in PyTorch.
S. Hochreiter and J. Schmidhuber, Long Short-Term Memory, Neural Computation 9 (1997);
F. Gers et al., Learning to Forget, Neural Computation 12 (2000); peepholes: F. Gers and
J. Schmidhuber, Recurrent Nets that Time and Count, IJCNN 2000.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.elementary import tanh
from daskdl.kernels.runtime.jit import fusedjit
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[np.floating]


def lstm_cell(z: Array, bias: Array, c: Array, new: Array, h: Array) -> None:
    """Advance an LSTM cell by a step, from its state ``c`` (rows, C) to ``new`` and its output h.

    ``z`` (rows, 4 * C): sums before the gates, less their bias; replaced by the gates' values.
    """
    none = np.empty((0, 0), z.dtype)
    over_rows(lstm_forward, (z, c, new, h), grain.CELL_ROWS, bias, none)


def lstm_cell_gradient(gates: Array, c: Array, new: Array, dh: Array, dc: Array) -> None:
    """Take the gradient of one step back, in place.

    ``gates`` of :func:`lstm_cell` are replaced by the gradient to ``z``; ``dc``, to the state after
    the step, by that to the state before it; ``dh`` (rows, C) is the gradient to the output.
    """
    none = np.empty((0, 0), gates.dtype)
    over_rows(lstm_backward, (gates, c, new, dh, dc), grain.CELL_ROWS, none)


@fusedjit
def lstm_forward(z, c, new, h, bias, peepholes):
    """Advance cells, with peepholes (3, C) to i, f and o unless there are 0."""
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
    """Take the gradients of a step back, with peepholes (3, C) unless there are 0."""
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
