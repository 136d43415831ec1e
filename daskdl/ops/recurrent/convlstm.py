"""A convolutional LSTM over a whole sequence, in one operation.

X. Shi et al., Convolutional LSTM Network: A Machine Learning Approach for Precipitation
Nowcasting, arXiv 1506.04214; here without its peephole weights.
"""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.convolution import conv2d as kernel
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.recurrent.lstm import lstm_cell, lstm_cell_gradient
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.vectors.arithmetic import bias_gradient
from daskdl.ops.shape.sequence import check, standard, start_of, unrolled
from daskdl.tensor import Array, op

__all__ = ["convlstm"]


def same(operation: str, name: str, weight: Array) -> Geometry:
    """Return the geometry that keeps an image's size under an odd, square kernel."""
    side = weight.shape[1]
    if weight.shape[2] != side or side % 2 == 0:
        raise ShapeError(
            f"{operation}: {name}: expected an odd, square kernel, found {weight.shape[1:3]}"
        )
    half = side // 2
    return Geometry((side, side), (1, 1), (half, half, half, half))


@op
def convlstm(
    x: Array | None,
    h: Array,
    c: Array,
    weight_input: Array | None,
    weight_state: Array,
    bias: Array,
    *,
    steps: int | None = None,
):
    """Run a ConvLSTM over the time axis; the input's convolution covers all steps at once.

    Parameters
    ----------
    x : array (N, T, H, W, in) or None
        For None, as in a forecaster that only unrolls its state, give ``steps``.
    h, c : arrays (N, H, W, C)
        Output and state before the first step.
    weight_input : array (4 * C, k, k, in) or None
    weight_state : array (4 * C, k, k, C)
        Gates in the order input, forget, cell, output.
    bias : array (4 * C,)
    steps : int
        T, if ``x`` is None.

    Returns
    -------
    outputs : array (N, T, H, W, C)
    h, c : arrays (N, H, W, C)
        Output and state after the last step.

    Examples
    --------
    >>> f32 = np.float32
    >>> x, h = np.ones((1, 3, 6, 6, 1), f32), np.zeros((1, 6, 6, 2), f32)
    >>> weights = np.ones((8, 3, 3, 1), f32), np.ones((8, 3, 3, 2), f32), np.zeros(8, f32)
    >>> [a.shape for a in convlstm(x, h, h, *weights)]
    [(1, 3, 6, 6, 2), (1, 6, 6, 2), (1, 6, 6, 2)]
    """
    steps, like = unrolled("convlstm", x, weight_input, steps), ("h", h)
    check("convlstm", like, h=(h, (None,) * 4))
    n, height, width, channels = h.shape
    features = 0 if x is None else x.shape[-1]
    check(
        "convlstm",
        like,
        x=(x, (n, None, height, width, None)),
        c=(c, h.shape),
        weight_input=(weight_input, (4 * channels, None, None, features)),
        weight_state=(weight_state, (4 * channels, None, None, channels)),
        bias=(bias, (4 * channels,)),
    )
    around, within = same("convlstm", "weight_state", weight_state), None
    images = (steps * n, height, width)

    # Time-major, (T, N, H, W, 4 * C): one step's gates are contiguous.
    inputs = None if x is None else standard(x.swapaxes(0, 1))  # (T, N, H, W, in)
    if inputs is None:
        gates = np.zeros((steps, n, height, width, 4 * channels), h.dtype)
    else:
        assert weight_input is not None
        within = same("convlstm", "weight_input", weight_input)
        gates = kernel.forward(inputs.reshape(*images, features), weight_input, within)
        gates = gates.reshape(steps, n, height, width, 4 * channels)
    outputs = empty((steps + 1, n, height, width, channels), h.dtype)
    states = empty(outputs.shape, h.dtype)
    outputs[0], states[0] = h, c
    step, shift = kernel.prepared(weight_state, around), standard(bias)
    for t in range(steps):
        step(outputs[t], gates[t])
        lstm_cell(
            gates[t].reshape(-1, 4 * channels),
            shift,
            states[t].reshape(-1, channels),
            states[t + 1].reshape(-1, channels),
            outputs[t + 1].reshape(-1, channels),
        )

    def backward(d_outputs: Array | None, dh: Array | None, dc: Array | None):
        dh = np.zeros_like(h) if dh is None else dh
        dc = start_of(dc, c.shape, c.dtype)
        back = kernel.prepared_adjoint(weight_state, around)
        for t in reversed(range(steps)):
            if d_outputs is not None:
                dh = dh + d_outputs[:, t]
            lstm_cell_gradient(
                gates[t].reshape(-1, 4 * channels),
                states[t].reshape(-1, channels),
                states[t + 1].reshape(-1, channels),
                np.ascontiguousarray(dh).reshape(-1, channels),
                dc.reshape(-1, channels),
            )
            dh = back(gates[t])
        d = gates.reshape(*images, 4 * channels)  # the gates' values have become their gradients

        def to_input() -> Array:
            assert weight_input is not None
            assert within is not None
            dx = kernel.input_gradient(d, weight_input, within, height, width)
            return dx.reshape(steps, n, height, width, -1).swapaxes(0, 1)

        def to_weight_input() -> Array:
            assert inputs is not None
            assert within is not None
            return kernel.weight_gradient(inputs.reshape(*images, features), d, within)

        def to_weight_state() -> Array:
            return kernel.weight_gradient(outputs[:-1].reshape(*images, channels), d, around)

        return to_input, dh, dc, to_weight_input, to_weight_state, lambda: bias_gradient(d)

    return (outputs[1:].swapaxes(0, 1), outputs[-1], states[-1]), backward
