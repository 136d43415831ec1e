"""RNN and GRU over sequences, and both directions of any recurrent layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.errors import SettingsError
from daskdl.kernels.recurrent import gru as gru_kernel
from daskdl.kernels.recurrent import rnn as kernel
from daskdl.kernels.runtime.precision import precision_of
from daskdl.kernels.tiles.matmul import product_of
from daskdl.ops.shape.sequence import Steps, check, flat, standard, start_of, to_inputs
from daskdl.ops.shape.shape import concatenate
from daskdl.tensor import Array, Tensor, op

__all__ = [
    "bidirectional",
    "gru",
    "rnn",
]


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
        PyTorch's ``weight_ih_l0`` and ``weight_hh_l0``.
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
        State after the last step of each sample.

    References
    ----------
    J. Elman, Finding Structure in Time, Cognitive Science 14 (1990).
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
    matmul = product_of(weight_input)
    precision = precision_of(weight_input, weight_state)
    sums = matmul(flat(inputs), weight_input.T).reshape(steps, n, channels)
    states = time.around(h, (n, channels), x.dtype)
    shift = np.zeros(channels, x.dtype) if bias is None else standard(bias)
    timing = time.lengths, time.reverse
    kernel.run(kernel.forward, precision, sums, weight_state.T, shift, states, *timing, relu)

    def backward(d_outputs: Array | None, dh: Array | None):
        dh = start_of(dh, (n, channels), x.dtype)
        arguments = states, time.gradient(d_outputs, dh), *timing, relu, dh
        d_bias = kernel.run_back(kernel.backward, precision, sums, weight_state, *arguments)
        d = flat(sums)
        return (
            lambda: to_inputs(matmul, sums, weight_input),
            dh,
            lambda: matmul(d.T, flat(inputs)),
            lambda: matmul(d.T, flat(time.before(states))),
            d_bias,
        )

    return (time.outputs(states), states[time.last]), backward


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
        Gates in the order reset, update, new, as in PyTorch's ``weight_ih_l0`` and
        ``weight_hh_l0``.
    bias_input, bias_state : arrays (3 * C,), optional
        PyTorch's ``bias_ih_l0`` and ``bias_hh_l0``. They are separate since the reset gate scales
        the state's part of the new gate with its bias.
    lengths : int array (N,), optional
        Steps of each sample: what lies beyond in ``x`` is not read.
    reverse : bool
        Whether to run from the last step (of each sample) to the first.

    Returns
    -------
    outputs : array (N, T, C)
        Zeros beyond a sample's length, as from PyTorch's packed sequences.
    h : array (N, C)
        State after the last step of each sample.

    References
    ----------
    K. Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, arXiv 1406.1078; with
    the reset gate after the matrix product.
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
    matmul = product_of(weight_input)
    precision = precision_of(weight_input, weight_state)
    matmul(flat(inputs), new_first.T, out=flat(gates)[:, : 3 * channels])
    states = time.around(h, (n, channels), x.dtype)
    timing = time.lengths, time.reverse
    kernel.run(gru_kernel.forward, precision, gates, weight_state.T, bias, states, *timing)

    def backward(d_outputs: Array | None, dh: Array | None):
        dh = start_of(dh, (n, channels), x.dtype)
        arguments = states, time.gradient(d_outputs, dh), *timing, dh
        d_bias = kernel.run_back(gru_kernel.backward, precision, gates, weight_state, *arguments)
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


def bidirectional(
    operation: Callable[..., tuple[Tensor, ...]],
    x: Array | Tensor,
    forward: Sequence[Any],
    backward: Sequence[Any],
    **settings: Any,
) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Run a sequence from its first step to its last and, with other weights, back.

    Parameters
    ----------
    operation : callable
        ``ops.lstm``, ``ops.gru`` or ``ops.rnn``.
    x : array (N, T, in)
    forward, backward : sequences
        All arguments of the operation after ``x``, for each direction: PyTorch's weights of a
        layer, and those whose names end in ``_reverse``.
    settings
        Settings of both directions, such as ``lengths``.

    Returns
    -------
    outputs : array (N, T, 2 * C)
        Outputs of the forward direction, then of the other, at each step.
    last, first : tuples of arrays (N, C)
        The final states of the forward direction and of the other, which ends at the first step.

    References
    ----------
    M. Schuster and K. Paliwal, Bidirectional Recurrent Neural Networks, IEEE Transactions on Signal
    Processing 45 (1997).

    Examples
    --------
    >>> x, h = np.ones((2, 5, 3), np.float32), np.zeros((2, 4), np.float32)
    >>> weights = np.ones((4, 3), np.float32), np.ones((4, 4), np.float32), np.zeros(4, np.float32)
    >>> outputs, last, first = bidirectional(ops.rnn, x, (h, *weights), (h, *weights))
    >>> outputs.shape, last[0].shape, first[0].shape
    ((2, 5, 8), (2, 4), (2, 4))
    """
    ahead, *last = operation(x, *forward, **settings)
    back, *first = operation(x, *backward, reverse=True, **settings)
    return concatenate(ahead, back), tuple(last), tuple(first)
