"""A simple RNN over all steps of a sequence: each thread takes its samples through all of it.

J. Elman, Finding Structure in Time, Cognitive Science 14 (1990). Arrays are time-major.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.packed import following, packed, product, room_for
from daskdl.kernels.runtime.elementary import tanh
from daskdl.kernels.runtime.jit import fusedjit
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.vectors.reduce import sum_over

Array = NDArray[np.floating]


def forward(
    sums: Array,
    weight: Array,
    bias: Array,
    states: Array,
    lengths: NDArray[np.int64],
    reverse: bool,
    relu: bool,
    precision: str = "float32",
) -> None:
    """Run all steps.

    Parameters
    ----------
    sums : array (T, N, C)
        The input's part; what it holds afterwards has no meaning.
    weight : array (C, C)
        From a state (rows) to the sums of the next step.
    bias : array (C,)
    states : array (T + 1, N, C)
        The first holds the state before the first step, the others are written; with ``reverse``
        the last, and the one before it comes next.
    lengths : int64 array (N,)
        Steps of each sample; beyond them its state stays as it is.
    reverse : bool
        Whether to begin with the last step.
    relu : bool
        Whether states are max(0, sum), not tanh(sum).
    precision : "float32", "bf16-pairs" or "bf16-tiles"
        Of products.
    """
    panels = packed(weight, precision)
    arguments = panels, bias, states, lengths, reverse, relu
    over_range(_forward, sums.shape[1], 1, sums, *arguments)


def backward(
    d_sums: Array,
    weight: Array,
    states: Array,
    d_outputs: Array,
    lengths: NDArray[np.int64],
    reverse: bool,
    relu: bool,
    dh: Array,
    precision: str = "float32",
) -> Array:
    """Take gradients back through all steps and return that to the bias (C,).

    Parameters
    ----------
    d_sums : array (T, N, C)
        What is written: the gradients to the sums.
    weight : array (C, C)
        From the sums of a step (rows) to the state before it.
    states, lengths, reverse, relu, precision
        As in :func:`forward`.
    d_outputs : array (T, N, C), or (0, N, C) where only the last state is wanted
    dh : array (N, C)
        Gradient to the state after the last step; replaced by that before the first.
    """
    panels = packed(weight, precision)
    arguments = panels, states, d_outputs, lengths, reverse, relu, dh
    over_range(_backward, d_sums.shape[1], 1, d_sums, *arguments)
    return sum_over(d_sums, (0, 1)).astype(d_sums.dtype)


@fusedjit
def _forward(sums, panels, bias, states, lengths, reverse, relu, which, start, stop):
    steps, n, room = sums.shape[0], sums.shape[2], room_for(stop - start, sums)
    zero = sums.dtype.type(0)
    for s in range(steps):
        t = steps - 1 - s if reverse else s
        before, after = (t + 1, t) if reverse else (t, t + 1)
        soon = following(sums, t, reverse, start, stop)
        product(states[before, start:stop], panels, sums[t, start:stop], True, room, soon)
        for r in range(start, stop):
            z, new = sums[t, r], states[after, r]
            if t >= lengths[r]:
                new[:] = states[before, r]
            elif relu:
                for k in range(n):
                    total = z[k] + bias[k]
                    new[k] = zero if total < zero else total
            else:
                for k in range(n):
                    new[k] = tanh(z[k] + bias[k])


@fusedjit
def _backward(d_sums, panels, states, d_outputs, lengths, reverse, relu, dh, which, start, stop):
    steps, n, room = d_sums.shape[0], d_sums.shape[2], room_for(stop - start, d_sums)
    zero, one = d_sums.dtype.type(0), d_sums.dtype.type(1)
    for s in range(steps):
        t = s if reverse else steps - 1 - s
        after = t if reverse else t + 1
        for r in range(start, stop):
            d, h, up = d_sums[t, r], states[after, r], dh[r]
            if t >= lengths[r]:
                d[:] = 0
                continue
            if d_outputs.shape[0]:
                up += d_outputs[t, r]
            if relu:
                for k in range(n):
                    d[k] = zero if h[k] <= zero else up[k]
            else:
                for k in range(n):
                    d[k] = up[k] * (one - h[k] * h[k])
            up[:] = 0
        soon = following(states, after, not reverse, start, stop)
        product(d_sums[t, start:stop], panels, dh[start:stop], True, room, soon)
