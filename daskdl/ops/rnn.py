"""A simple RNN over a whole sequence, in one operation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from daskdl.errors import SettingsError
from daskdl.kernels.products.precise import in_bfloat16, product_of
from daskdl.kernels.recurrent import rnn as kernel
from daskdl.ops.sequence import Steps, check, flat, plain, start_of, to_inputs
from daskdl.tensor import Array, op

__all__ = ["rnn"]


@op
def rnn(
    x: Array,
    h: Array | None,
    weight_input: Array,
    weight_state: Array,
    bias: Array | None,
    *,
    nonlinearity: str = "tanh",
    lengths: ArrayLike | None = None,
    reverse: bool = False,
):
    """Run a simple RNN over the time axis; the input's matrix product is one for all steps.

    Parameters
    ----------
    x : array (N, T, in), float32 or float64
    h : array (N, C), optional
        State before the first step; zeros without.
    weight_input : array (C, in)
    weight_state : array (C, C)
        PyTorch's ``weight_ih_l0`` and ``weight_hh_l0`` as they are.
    bias : array (C,), optional
        PyTorch's ``bias_ih_l0 + bias_hh_l0``.
    nonlinearity : "tanh" or "relu"
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
    SettingsError
        For another nonlinearity.

    References
    ----------
    J. Elman, Finding Structure in Time, Cognitive Science 14 (1990).

    Examples
    --------
    >>> x = np.ones((2, 5, 3), np.float32)
    >>> weights = np.ones((4, 3), np.float32), np.ones((4, 4), np.float32)
    >>> [part.shape for part in ops.rnn(x, None, *weights, None)]
    [(2, 5, 4), (2, 4)]
    """
    if nonlinearity not in ("tanh", "relu"):
        raise SettingsError(f"rnn: nonlinearity: expected 'tanh' or 'relu', found {nonlinearity!r}")
    like = "x", x
    check("rnn", like, x=(x, (None, None, None)), weight_state=(weight_state, (None, None)))
    (n, steps, features), channels = x.shape, weight_state.shape[1]
    check(
        "rnn",
        like,
        h=(h, (n, channels)),
        weight_input=(weight_input, (channels, features)),
        weight_state=(weight_state, (channels, channels)),
        bias=(bias, (channels,)),
    )
    time, relu = Steps("rnn", n, steps, lengths, reverse), nonlinearity == "relu"
    inputs = time.major(x)
    matmul, half = product_of(weight_input), in_bfloat16(weight_input, weight_state)
    sums = matmul(flat(inputs), weight_input.T).reshape(steps, n, channels)
    states = time.around(h, (n, channels), x.dtype)
    shift = np.zeros(channels, x.dtype) if bias is None else plain(bias)
    kernel.forward(sums, weight_state.T, shift, states, time.lengths, time.reverse, relu, half)

    def backward(d_outputs: Array | None, dh: Array | None):
        dh = start_of(dh, (n, channels), x.dtype)
        d_bias = kernel.backward(
            sums, weight_state, states, time.gradient(d_outputs, dh), time.lengths,
            time.reverse, relu, dh, half,
        )  # fmt: skip
        d = flat(sums)
        return (
            lambda: to_inputs(matmul, sums, weight_input),
            dh,
            lambda: matmul(d.T, flat(inputs)),
            lambda: matmul(d.T, flat(time.before(states))),
            d_bias,
        )

    return (time.outputs(states), states[time.last]), backward
