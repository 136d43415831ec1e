"""Recurrent layers over sequences of images: the convolutional LSTM and the trajectory GRU."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Parameter, forget_bias, generator, glorot, zeros
from daskdl.ops.recurrent.convlstm import convlstm
from daskdl.ops.recurrent.trajgru import trajgru
from daskdl.tensor import Tensor

__all__ = ["ConvLSTM", "TrajGRU"]


class ConvLSTM(Module, pure=True):
    """An LSTM whose matrix products are convolutions, over sequences of images.

    X. Shi et al., arXiv 1506.04214, without peephole weights. The size of the images is kept.

    Parameters
    ----------
    in_channels : int
        0 for a layer without input, which only unrolls its state.
    channels : int
        Channels of the state and the output.
    kernel_size : int
        Odd.
    seed : int, optional
        Seed of the initial weights.
    """

    def __init__(
        self, in_channels: int, channels: int, kernel_size: int = 3, seed: int | None = None
    ) -> None:
        check_odd(self, kernel_size=kernel_size)
        rng, k = generator(seed), kernel_size
        self.in_channels, self.channels = in_channels, channels
        fans = (k * k * (in_channels + channels), k * k * channels)
        self.weight_input = (
            glorot(rng, (4 * channels, k, k, in_channels), fans) if in_channels else None
        )
        self.weight_state = glorot(rng, (4 * channels, k, k, channels), fans)
        self.bias = Parameter(forget_bias(channels))

    def forward(
        self, x: Any, state: tuple[Any, Any] | None = None, steps: int | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Run over a sequence.

        Parameters
        ----------
        x : (N, T, H, W, in), or None for a layer without input
        state : (h, c), each (N, H, W, C), optional
            By default zeros.
        steps : int
            T, when ``x`` is None.

        Returns
        -------
        outputs : (N, T, H, W, C)
        state : (h, c) after the last step
        """
        check_input(self, x, state, steps)
        if state is None:
            n, _, height, width, _ = x.shape
            zero = np.zeros((n, height, width, self.channels), x.dtype)
            state = zero, zero
        else:
            n, height, width = state[0].shape[:3] if x is None else (x.shape[0], *x.shape[2:4])
            expected = (n, height, width, self.channels)
            if any(tuple(part.shape) != expected for part in state):
                raise ShapeError(
                    f"ConvLSTM: expected a state (h, c) of shape {expected} each, found "
                    f"{tuple(state[0].shape)} and {tuple(state[1].shape)}"
                )
        outputs, h, c = convlstm(
            x, *state, self.weight_input, self.weight_state, self.bias, steps=steps
        )
        return outputs, (h, c)


def check_input(layer: Any, x: Any, state: Any, steps: int | None) -> None:
    """Raise a ShapeError unless there is a sequence, or a state and steps for a layer without."""
    if x is not None:
        check_last_axis(layer, x, 5, layer.in_channels)
    elif layer.in_channels or state is None or steps is None:
        raise ShapeError(
            f"{type(layer).__name__}: without an input expected in_channels=0, a state and steps, "
            f"found in_channels={layer.in_channels}, state={state!r}, steps={steps}"
        )


def check_odd(layer: Any, **sizes: int) -> None:
    """Raise a ShapeError unless kernels' sizes, by their arguments' names, are odd."""
    for name, size in sizes.items():
        if size % 2 == 0:
            raise ShapeError(
                f"{type(layer).__name__}: expected an odd {name}, found {size}"
                "; take an odd one, which keeps the images' size"
            )


class TrajGRU(Module, pure=True):
    """A convolutional GRU that samples its state along learned flows.

    X. Shi et al., arXiv 1706.03458. The size of the images is kept.

    Parameters
    ----------
    in_channels : int
        0 for a layer without input, which only unrolls its state.
    channels : int
        Channels of the state and the output.
    links : int
        Number of places at which each pixel samples the state.
    kernel_size : int
        Odd size of the input's convolution.
    flow_channels, flow_kernel : int
        Sizes of the small network for the flows; the kernel is odd.
    slope : float
        Slope of its leaky ReLU and of the state's.
    seed : int, optional
        Seed of the initial weights.
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        links: int = 13,
        kernel_size: int = 3,
        flow_channels: int = 32,
        flow_kernel: int = 5,
        slope: float = 0.2,
        seed: int | None = None,
    ) -> None:
        check_odd(self, kernel_size=kernel_size, flow_kernel=flow_kernel)
        rng, k, m = generator(seed), kernel_size, flow_kernel
        self.in_channels, self.channels, self.slope = in_channels, channels, slope
        inputs = k * k * in_channels
        self.weight_input = (
            glorot(rng, (3 * channels, k, k, in_channels), (inputs, k * k * channels))
            if in_channels
            else None
        )
        self.weight_state = glorot(
            rng, (3 * channels, links * channels), (links * channels, channels)
        )
        self.bias_input, self.bias_state = zeros((3 * channels,)), zeros((3 * channels,))
        flow = m * m * flow_channels
        self.weight_flow_input = (
            glorot(rng, (flow_channels, m, m, in_channels), (m * m * in_channels, flow))
            if in_channels
            else None
        )
        self.weight_flow_state = glorot(
            rng, (flow_channels, m, m, channels), (m * m * channels, flow)
        )
        self.bias_flow = zeros((flow_channels,))
        self.weight_links = glorot(rng, (2 * links, m, m, flow_channels), (flow, m * m * 2 * links))
        self.bias_links = zeros((2 * links,))

    def forward(self, x: Any, state: Any = None, steps: int | None = None) -> tuple[Tensor, Tensor]:
        """Run over a sequence.

        Parameters
        ----------
        x : (N, T, H, W, in), or None for a layer without input
        state : (N, H, W, C), optional
            By default zeros.
        steps : int
            T, when ``x`` is None.

        Returns
        -------
        outputs : (N, T, H, W, C)
        state : (N, H, W, C) after the last step
        """
        check_input(self, x, state, steps)
        if state is None:
            state = np.zeros((x.shape[0], *x.shape[2:4], self.channels), x.dtype)
        check_last_axis(self, state, 4, self.channels)
        outputs, last = trajgru(
            x, state, self.weight_input, self.weight_state, self.bias_input, self.bias_state,
            self.weight_flow_input, self.weight_flow_state, self.bias_flow,
            self.weight_links, self.bias_links, steps=steps, slope=self.slope,
        )  # fmt: skip
        return outputs, last
