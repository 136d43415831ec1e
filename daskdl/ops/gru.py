"""A GRU over a whole sequence, in one operation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from daskdl.kernels.products.precise import in_bfloat16, product_of
from daskdl.kernels.recurrent import gru as kernel
from daskdl.ops.sequence import Steps, check, flat, start_of, to_inputs
from daskdl.tensor import Array, op

__all__ = ["gru"]


@op
def gru(
    x: Array,
    h: Array | None,
    weight_input: Array,
    weight_state: Array,
    bias_input: Array | None,
    bias_state: Array | None,
    *,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
):
    """Run a GRU over the time axis; the input's matrix product is one for all steps.

    Parameters
    ----------
    x : array (N, T, in), float32 or float64
    h : array (N, C), optional
        State before the first step; zeros without.
    weight_input : array (3 * C, in)
    weight_state : array (3 * C, C)
        Gates in the order reset, update, new: PyTorch's ``weight_ih_l0`` and ``weight_hh_l0`` as
        they are.
    bias_input, bias_state : arrays (3 * C,), optional
        PyTorch's ``bias_ih_l0`` and ``bias_hh_l0``. They are two because the reset gate scales the
        state's part of the new gate with its bias.
    lengths : int array (N,), optional
        Steps of each sample: what lies beyond in ``x`` is not read.
    reverse : bool
        Whether to run from the last step (of each sample) to the first.

    Returns
    -------
    outputs : array (N, T, C)
        Zeros beyond a sample's length, as from PyTorch's packed sequences.
    h : array (N, C)
        After the last step that each sample has.

    Raises
    ------
    ShapeError
        When arguments do not fit each other.

    References
    ----------
    K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, arXiv 1406.1078; with
    the reset gate after the matrix product.

    Examples
    --------
    >>> x = np.ones((2, 5, 3), np.float32)
    >>> weights = np.ones((12, 3), np.float32), np.ones((12, 4), np.float32)
    >>> [part.shape for part in ops.gru(x, None, *weights, None, None)]
    [(2, 5, 4), (2, 4)]
    """
    like = "x", x
    check("gru", like, x=(x, (None, None, None)), weight_state=(weight_state, (None, None)))
    (n, steps, features), channels = x.shape, weight_state.shape[1]
    check(
        "gru",
        like,
        h=(h, (n, channels)),
        weight_input=(weight_input, (3 * channels, features)),
        weight_state=(weight_state, (3 * channels, channels)),
        bias_input=(bias_input, (3 * channels,)),
        bias_state=(bias_state, (3 * channels,)),
    )
    time = Steps("gru", n, steps, lengths, reverse)
    inputs = time.major(x)
    # The kernel's order is new, reset, update, and the state's part of new (see its docstring).
    new_first = np.roll(weight_input, channels, axis=0)
    bias = np.zeros(4 * channels, x.dtype)
    if bias_input is not None:
        bias[: 3 * channels] += np.roll(bias_input, channels)
    if bias_state is not None:
        bias[channels:] += bias_state
    gates = np.empty((steps, n, 4 * channels), x.dtype)
    matmul, half = product_of(weight_input), in_bfloat16(weight_input, weight_state)
    matmul(flat(inputs), new_first.T, out=flat(gates)[:, : 3 * channels])
    states = time.around(h, (n, channels), x.dtype)
    kernel.forward(gates, weight_state.T, bias, states, time.lengths, time.reverse, half)

    def backward(d_outputs: Array | None, dh: Array | None):
        dh = start_of(dh, (n, channels), x.dtype)
        d_bias = kernel.backward(
            gates, weight_state, states, time.gradient(d_outputs, dh), time.lengths,
            time.reverse, dh, half,
        )  # fmt: skip
        # The gates' values have become the gradients to their sums.
        d_input, d_state = gates[..., : 3 * channels], flat(gates)[:, channels:]
        return (
            lambda: to_inputs(matmul, d_input, new_first),
            dh,
            lambda: np.roll(matmul(flat(gates)[:, : 3 * channels].T, flat(inputs)), -channels, 0),
            lambda: matmul(d_state.T, flat(time.before(states))),
            np.roll(d_bias[: 3 * channels], -channels),
            d_bias[channels:],
        )

    return (time.outputs(states), states[time.last]), backward
