"""The convolutional LSTM layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Parameter, forget_bias, generator, glorot
from daskdl.ops.recurrent.convlstm import convlstm
from daskdl.tensor import Tensor

__all__ = ["ConvLSTM"]


class ConvLSTM(Module, pure=True):
    """An LSTM whose matrix products are convolutions, over sequences of images.

    X. Shi et al., arXiv 1506.04214, without peephole weights. The size of the images is kept.

    Parameters
    ----------
    in_channels : int
        0 for a layer that has no input and only unrolls its state.
    channels : int
        Of the state and the output.
    kernel_size : int
        Odd.
    seed : int, optional
        Of the initial weights.
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
            Zeros without it.
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
    """Raise a ShapeError unless there is a sequence, or all that a layer without one needs."""
    if x is not None:
        check_last_axis(layer, x, 5, layer.in_channels)
    elif layer.in_channels or state is None or steps is None:
        raise ShapeError(
            f"{type(layer).__name__}: without an input expected in_channels=0, a state and steps, "
            f"found in_channels={layer.in_channels}, state={state!r}, steps={steps}"
        )


def check_odd(layer: Any, **sizes: int) -> None:
    """Raise a ShapeError unless sizes of kernels, by their arguments' names, are odd."""
    for name, size in sizes.items():
        if size % 2 == 0:
            raise ShapeError(
                f"{type(layer).__name__}: expected an odd {name}, found {size}"
                "; take an odd one, which keeps the images' size"
            )
