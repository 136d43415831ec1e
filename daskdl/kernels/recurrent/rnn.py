"""Recurrent layers over all steps of a sequence in one call, and the simple RNN.

Samples are independent: each thread takes its own through all steps, and threads synchronise once,
at the end. Arrays are time-major. ``states`` (T + 1, N, C) hold the state before the first step and
after each; with ``reverse``, steps go from the last to the first, and so do states. A sample has
``lengths`` (N,) steps; the others do not change its state.
J. Elman, Finding Structure in Time, Cognitive Science 14 (1990).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.packed import following, packed, product, room_for
from daskdl.kernels.runtime.elementary import tanh
from daskdl.kernels.runtime.jit import fusedjit
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.vectors.reduce import sum_over

Array = NDArray[np.floating]


def run(
    kernel: Any, precision: str, sums: Array, weight: Array, *arguments: Any, panels: Any = None
) -> None:
    """Run all steps of ``forward`` or ``backward`` of a layer's module.

    ``sums`` (T, N, k C) are the input's part of the sums, or the values that forward made of them.
    ``weight`` leads from a state (rows) to the next step's sums, backward from sums to the state;
    ``panels`` are its result of :func:`~daskdl.kernels.products.packed.packed`, if there is one.
    """
    panels = packed(weight, precision) if panels is None else panels
    over_range(kernel, sums.shape[1], 1, sums, panels, *arguments)


def run_back(kernel: Any, precision: str, sums: Array, weight: Array, *arguments: Any) -> Array:
    """Propagate gradients back through all steps; return the gradient to the bias (k C,).

    ``sums`` become the gradients to them. The last arguments, the gradients to the state after the
    last step, become those to the state before the first. The gradient to all outputs is (T, N, C),
    or (0, N, C) if only the last output is used.
    """
    run(kernel, precision, sums, weight, *arguments)
    return sum_over(sums, (0, 1)).astype(sums.dtype)


@fusedjit
def forward(sums, panels, bias, states, lengths, reverse, relu, which, start, stop):
    """Write the states: max(0, sum) with ``relu``, else tanh(sum)."""
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
def backward(d_sums, panels, states, d_outputs, lengths, reverse, relu, dh, which, start, stop):
    """Write the gradients to the sums; the sums themselves are not read."""
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
