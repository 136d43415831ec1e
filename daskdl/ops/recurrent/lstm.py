"""An LSTM over a whole sequence, in one operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.kernels.recurrent import lstm as kernel
from daskdl.kernels.recurrent.rnn import run, run_back
from daskdl.kernels.runtime.precision import precision_of
from daskdl.kernels.tiles.matmul import product_of
from daskdl.ops.shape.sequence import Steps, check, flat, standard, start_of, to_inputs
from daskdl.tensor import Array, op

__all__ = ["lstm"]


@op
def lstm(
    x: Array,
    h: Array | None,
    c: Array | None,
    weight_input: Array,
    weight_state: Array,
    bias: Array | None,
    peepholes: Array | None,
    *,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
):
    """Run an LSTM over the time axis; the input's matrix product is one for all steps.

    Parameters
    ----------
    x : array (N, T, in), float32 or float64
    h, c : arrays (N, C), optional
        Output and state before the first step; by default zeros.
    weight_input : array (4 * C, in)
    weight_state : array (4 * C, C)
        Gates in the order input, forget, cell, output, as in PyTorch's ``weight_ih_l0`` and
        ``weight_hh_l0``.
    bias : array (4 * C,), optional
        PyTorch's ``bias_ih_l0 + bias_hh_l0``.
    peepholes : array (3, C), optional
        Elementwise weights from the state before a step to its input and forget gates, and from
        the state after it to its output gate.
    lengths : int array (N,), optional
        Steps of each sample; later steps of ``x`` are not read.
    reverse : bool
        Whether to run from the last step (of each sample) to the first.

    Returns
    -------
    outputs : array (N, T, C)
        Zeros beyond a sample's length, as from PyTorch's packed sequences.
    h, c : arrays (N, C)
        Output and state after the last step of each sample.

    References
    ----------
    S. Hochreiter and J. Schmidhuber, Long Short-Term Memory, Neural Computation 9 (1997); F. Gers
    and J. Schmidhuber, Recurrent Nets that Time and Count, IJCNN 2000 (peepholes).
    """
    return compute(
        _product, x, h, c, weight_input, weight_state, bias, peepholes, lengths=lengths,
        reverse=reverse,
    )  # fmt: skip


def _product(rows: Array, weight: Array) -> Array:
    return product_of(weight)(rows, weight.T)


def compute(
    product: Callable[[Array, Array], Array],
    x: Array,
    h: Array | None,
    c: Array | None,
    weight_input: Array,
    weight_state: Array,
    bias: Array | None,
    peepholes: Array | None,
    *,
    lengths: ArrayLike | None = None,
    reverse: bool = False,
    panels: Any = None,
    sums: Callable[[], Array] | None = None,
):
    """Return the results of :func:`lstm`, and its backward.

    ``product`` returns the product of all steps' inputs (rows, in) and weights (out, in).
    ``panels`` are the state's weights packed for the kernel, if available. ``sums`` returns the
    products with all inputs (T, N, 4 * C); then only the shape of x counts, and there is no
    backward.
    """
    like = "x", x
    check("lstm", like, x=(x, (None, None, None)), weight_state=(weight_state, (None, None)))
    (n, steps, features), channels = x.shape, weight_state.shape[1]
    check(
        "lstm",
        like,
        h=(h, (n, channels)),
        c=(c, (n, channels)),
        weight_input=(weight_input, (4 * channels, features)),
        weight_state=(weight_state, (4 * channels, channels)),
        bias=(bias, (4 * channels,)),
        peepholes=(peepholes, (3, channels)),
    )
    time = Steps("lstm", n, steps, lengths, reverse)
    if sums is None:
        inputs = time.major(x)
        gates = product(flat(inputs), weight_input).reshape(steps, n, 4 * channels)
    else:
        gates = sums()
    outputs = time.around(h, (n, channels), x.dtype)
    states = time.around(c, (n, channels), x.dtype)
    shift = np.zeros(4 * channels, x.dtype) if bias is None else standard(bias)
    peeps = np.empty((0, 0), x.dtype) if peepholes is None else standard(peepholes)
    matmul = product_of(weight_input)
    precision = precision_of(weight_input, weight_state)
    timing = time.lengths, time.reverse
    arguments = shift, peeps, states, outputs, *timing
    run(kernel.forward, precision, gates, weight_state.T, *arguments, panels=panels)

    def backward(d_outputs: Array | None, dh: Array | None, dc: Array | None):
        dh, dc = (start_of(d, (n, channels), x.dtype) for d in (dh, dc))
        arguments = peeps, states, time.gradient(d_outputs, dh), *timing, dh, dc
        d_bias = run_back(kernel.backward, precision, gates, weight_state, *arguments)
        d = flat(gates)  # the gates' values have become the gradients to their sums

        def to_peepholes() -> Array:
            di, df, _, do = np.split(gates, 4, axis=2)
            pairs = (di, time.before(states)), (df, time.before(states)), (do, time.after(states))
            return np.stack([np.einsum("tnc,tnc->c", *pair) for pair in pairs])

        return (
            lambda: to_inputs(matmul, gates, weight_input),
            dh,
            dc,
            lambda: matmul(d.T, flat(inputs)),
            lambda: matmul(d.T, flat(time.before(outputs))),
            d_bias,
            to_peepholes,
        )

    return (time.outputs(outputs), outputs[time.last], states[time.last]), backward
