"""An LSTM over all steps of a sequence: each thread takes its samples through the whole of it.

Arrays are time-major. Samples do not depend on each other, so threads meet once, at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.packed import following, packed, product, room_for
from daskdl.kernels.recurrent.lstm_cell import lstm_backward, lstm_forward
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.vectors.reduce import sum_over

Array = NDArray[np.floating]


def forward(
    gates: Array,
    weight: Array,
    bias: Array,
    peepholes: Array,
    states: Array,
    outputs: Array,
    lengths: NDArray[np.int64],
    reverse: bool,
    precision: str = "float32",
    panels: Any = None,
) -> None:
    """Run all steps.

    Parameters
    ----------
    gates : array (T, N, 4 * C)
        The input's part of the sums; replaced by the gates' values (input, forget, cell, output).
    weight : array (C, 4 * C)
        From the output of a step to the sums of the next.
    bias : array (4 * C,)
    peepholes : array (3, C), or (0, 0) for none
    states, outputs : arrays (T + 1, N, C)
        The first of them holds what was before the first step, and the others are written; with
        ``reverse`` the last, and the one before it comes next.
    lengths : int64 array (N,)
        Steps of each sample; beyond them its state and output stay as they are.
    reverse : bool
        Whether to begin with the last step.
    precision : "float32", "bf16-pairs" or "bf16-tiles"
        Of products.
    panels : optional
        The weights, from :func:`~daskdl.kernels.products.packed.packed`.
    """
    panels = packed(weight, precision) if panels is None else panels
    arguments = panels, bias, peepholes, states, outputs, lengths, reverse
    over_range(_forward, gates.shape[1], 1, gates, *arguments)


def backward(
    gates: Array,
    weight: Array,
    peepholes: Array,
    states: Array,
    d_outputs: Array,
    lengths: NDArray[np.int64],
    reverse: bool,
    dh: Array,
    dc: Array,
    precision: str = "float32",
) -> Array:
    """Take gradients back through all steps, in place, and return that to the bias (4 * C,).

    Parameters
    ----------
    gates : array (T, N, 4 * C)
        Of :func:`forward`; replaced by the gradients to the sums.
    weight : array (4 * C, C)
    peepholes, states, lengths, reverse, precision
        As in :func:`forward`.
    d_outputs : array (T, N, C), or (0, N, C) where only the last output is wanted
    dh, dc : arrays (N, C)
        Gradients to output and state after the last step; replaced by those before the first.
    """
    panels = packed(weight, precision)
    arguments = panels, peepholes, states, d_outputs, lengths, reverse, dh, dc
    over_range(_backward, gates.shape[1], 1, gates, *arguments)
    return sum_over(gates, (0, 1)).astype(gates.dtype)


@jit
def _forward(gates, panels, bias, peepholes, states, outputs, lengths, reverse, which, start, stop):
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
def _backward(
    gates, panels, peepholes, states, d_outputs, lengths, reverse, dh, dc, which, start, stop
):
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
            going = slice(r, end)  # samples side by side that have not ended
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
