"""A TrajGRU over a whole sequence of images, in one operation.

X. Shi et al., Deep Learning for Precipitation Nowcasting: A Benchmark and A New Model,
arXiv 1706.03458.
"""

from __future__ import annotations

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.convolution import conv2d as kernel
from daskdl.kernels.recurrent import trajgru as links
from daskdl.kernels.recurrent.gru import gru_cell, gru_cell_gradient
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors.activations import leaky_relu, leaky_relu_back
from daskdl.kernels.vectors.arithmetic import bias_gradient
from daskdl.ops.recurrent.convlstm import same
from daskdl.ops.shape.sequence import check, standard, turned, unrolled
from daskdl.tensor import Array, op

__all__ = ["trajgru"]


@op
def trajgru(
    x: Array | None,
    h: Array,
    weight_input: Array | None,
    weight_state: Array,
    bias_input: Array,
    bias_state: Array,
    weight_flow_input: Array | None,
    weight_flow_state: Array,
    bias_flow: Array,
    weight_links: Array,
    bias_links: Array,
    *,
    steps: int | None = None,
    slope: float = 0.2,
):
    """Run a TrajGRU over the time axis; the input's convolutions cover all steps at once.

    A small network computes L flows from the input and the state. The state is sampled where each
    flow points, and the joined samples replace the state of a GRU:
    reset, update = sigmoid(input + samples), new = leaky_relu(input + reset * samples), each after
    its weights, and the state becomes (1 - update) * new + update * state.

    Parameters
    ----------
    x : array (N, T, H, W, in) or None
        For None, as in a forecaster that only unrolls its state, give ``steps``.
    h : array (N, H, W, C)
        State before the first step.
    weight_input : array (3 * C, k, k, in) or None
    weight_state : array (3 * C, L * C)
        Gates in the order reset, update, new; all channels of the first link come first.
    bias_input, bias_state : arrays (3 * C,)
    weight_flow_input : array (F, m, m, in) or None
    weight_flow_state : array (F, m, m, C)
    bias_flow : array (F,)
        The hidden layer of the network for the flows; 5 x 5 and F = 32 in the paper.
    weight_links : array (2 * L, m, m, F)
    bias_links : array (2 * L,)
        Its last layer: for each link the offset in columns to the right and in rows down at which
        the state is sampled, by bilinear interpolation; outside the image it is zero.
    steps : int
        T, if ``x`` is None.
    slope : float
        Slope of the leaky ReLUs of the new state and of the hidden layer, at least 0.

    Returns
    -------
    outputs : array (N, T, H, W, C)
    h : array (N, H, W, C)
        State after the last step.

    Examples
    --------
    >>> f32, links = np.float32, 2
    >>> x, h = np.ones((1, 3, 6, 6, 1), f32), np.zeros((1, 6, 6, 2), f32)
    >>> to_gates = np.ones((6, 3, 3, 1), f32), np.ones((6, links * 2), f32), *np.zeros((2, 6), f32)
    >>> to_flow = np.ones((4, 3, 3, 1), f32), np.ones((4, 3, 3, 2), f32), np.zeros(4, f32)
    >>> to_links = np.ones((2 * links, 3, 3, 4), f32), np.zeros(2 * links, f32)
    >>> results = trajgru(x, h, *to_gates, *to_flow, *to_links)
    >>> [a.shape for a in results]
    [(1, 3, 6, 6, 2), (1, 6, 6, 2)]
    """
    if not slope >= 0:
        raise SettingsError(f"trajgru: slope: expected at least 0, found {slope}")
    steps, like = unrolled("trajgru", x, weight_input, steps), ("h", h)
    check("trajgru", like, h=(h, (None,) * 4), weight_links=(weight_links, (None,) * 4))
    (n, height, width, channels), n_flows = h.shape, len(weight_links)
    features, hidden_channels = 0 if x is None else x.shape[-1], weight_links.shape[3]
    check(
        "trajgru",
        like,
        x=(x, (n, None, height, width, None)),
        weight_input=(weight_input, (3 * channels, None, None, features)),
        weight_state=(weight_state, (3 * channels, n_flows // 2 * channels)),
        bias_input=(bias_input, (3 * channels,)),
        bias_state=(bias_state, (3 * channels,)),
        weight_flow_state=(weight_flow_state, (hidden_channels, None, None, channels)),
        weight_flow_input=(
            weight_flow_input,
            (hidden_channels, *weight_flow_state.shape[1:3], features),
        ),
        bias_flow=(bias_flow, (hidden_channels,)),
        weight_links=(weight_links, (n_flows // 2 * 2, None, None, None)),
        bias_links=(bias_links, (n_flows,)),
    )
    if (weight_flow_input is None) != (x is None):
        raise ShapeError("trajgru: weight_flow_input: expected None exactly if x is None")
    images = (steps * n, height, width)
    around = same("trajgru", "weight_flow_state", weight_flow_state)
    from_one = same("trajgru", "weight_links", weight_links)
    dtype = h.dtype

    # As in kernels.recurrent.gru: new, reset, update of the input, and the state's part of new.
    gates = np.zeros((steps, n, height, width, 4 * channels), dtype)
    hidden = np.empty((steps, n, height, width, hidden_channels), dtype)
    hidden[:] = bias_flow
    if x is not None and weight_input is not None and weight_flow_input is not None:
        frames = standard(x.swapaxes(0, 1)).reshape(*images, features)
        within = same("trajgru", "weight_input", weight_input)
        new_first = np.roll(weight_input, channels, axis=0)
        part = kernel.forward(frames, new_first, within)
        gates[..., : 3 * channels] = part.reshape(*gates.shape[:-1], 3 * channels)
        kernel.forward(frames, weight_flow_input, around, hidden.reshape(*images, hidden_channels))
    bias = np.zeros(4 * channels, dtype)
    bias[: 3 * channels] += np.roll(bias_input, channels)
    bias[channels:] += bias_state
    flows = np.empty((steps, n, height, width, n_flows), dtype)
    flows[:] = bias_links
    states = np.empty((steps + 1, n, height, width, channels), dtype)
    states[0] = h
    to_hidden = kernel.prepared(weight_flow_state, around)
    to_flows = kernel.prepared(weight_links, from_one)
    by_sample, slopes = turned(weight_state), np.array([slope], dtype)
    for t in range(steps):
        to_hidden(states[t], hidden[t])
        hidden[t] = one_pass(leaky_relu, hidden[t], settings=slopes)[0]
        to_flows(hidden[t], flows[t])
        sums = gates[t].reshape(-1, 4 * channels)
        links.project(states[t], flows[t], by_sample, sums)
        gru_cell(
            sums, bias, slope, states[t].reshape(-1, channels), states[t + 1].reshape(-1, channels)
        )

    def backward(d_outputs: Array | None, dh: Array | None):
        dh = np.zeros(h.shape, dtype) if dh is None else np.array(dh, order="C")
        d_flows, d_hidden = np.empty_like(flows), np.empty_like(hidden)
        d_weight_state = np.zeros_like(weight_state)
        from_hidden = kernel.prepared_adjoint(weight_flow_state, around)
        from_flows = kernel.prepared_adjoint(weight_links, from_one)
        for t in reversed(range(steps)):
            if d_outputs is not None:
                dh += d_outputs[:, t]
            d = gates[t].reshape(-1, 4 * channels)
            gru_cell_gradient(d, slope, states[t].reshape(-1, channels), dh.reshape(-1, channels))
            d_flows[t], d_weight = links.project_gradient(
                states[t], flows[t], standard(weight_state), d, dh
            )
            d_weight_state += d_weight
            # The result's sign is the argument's.
            d_hidden[t] = one_pass(
                leaky_relu_back, hidden[t], from_flows(d_flows[t]), settings=slopes
            )[0]
            dh += from_hidden(d_hidden[t])
        # The gates' values have become the gradients to their sums.
        d_bias = bias_gradient(gates)
        from_sums, from_links = (
            d_hidden.reshape(*images, hidden_channels),
            d_flows.reshape(*images, -1),
        )
        before = states[:-1].reshape(*images, channels)

        def d_input() -> Array:
            return gates[..., : 3 * channels].reshape(*images, 3 * channels)

        def to_input() -> Array:
            assert weight_flow_input is not None
            dx = kernel.input_gradient(d_input(), new_first, within, height, width)
            dx += kernel.input_gradient(from_sums, weight_flow_input, around, height, width)
            return dx.reshape(steps, n, height, width, features).swapaxes(0, 1)

        def to_weight_input() -> Array:
            return np.roll(kernel.weight_gradient(frames, d_input(), within), -channels, axis=0)

        return (
            to_input,
            dh,
            to_weight_input,
            d_weight_state,
            np.roll(d_bias[: 3 * channels], -channels),
            d_bias[channels:],
            lambda: kernel.weight_gradient(frames, from_sums, around),
            lambda: kernel.weight_gradient(before, from_sums, around),
            lambda: bias_gradient(from_sums),
            lambda: kernel.weight_gradient(
                hidden.reshape(*images, hidden_channels), from_links, from_one
            ),
            lambda: bias_gradient(from_links),
        )

    return (states[1:].swapaxes(0, 1), states[-1]), backward
