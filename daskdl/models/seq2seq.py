"""Encoder-forecaster of ConvLSTM layers: it maps a sequence of images to the next images.

X. Shi et al., Convolutional LSTM Network: A Machine Learning Approach for Precipitation
Nowcasting, arXiv 1506.04214, figure 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.recurrent.convlstm import ConvLSTM
from daskdl.ops.pool.resample import resize_bilinear
from daskdl.ops.shape.shape import concatenate, depth_to_space, pad, reshape, space_to_depth
from daskdl.tensor import Tensor


class ConvLSTMForecaster(Module, pure=True):
    """Reads ``n_in`` images into the states of ConvLSTM layers and unrolls them ``n_out`` steps.

    Blocks of pixels are folded into channels first, so that the layers work on a coarser grid. The
    forecaster's layers start from the states of the encoder's; its first layer has no input. Each
    output image is a 3x3 convolution of the outputs of all its layers. The convolution starts as a
    linear interpolation between blocks: with random weights, or weights for the own block only,
    images would show the grid of blocks.

    Parameters
    ----------
    n_in, n_out : int
        Number of input images and of output images.
    channels : sequence of int
        Channels of each ConvLSTM layer.
    kernel_size : int
        Size of the kernels, in blocks; odd.
    block : int
        Side of the blocks of pixels; rows and columns must be multiples of it.
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = ConvLSTMForecaster(2, 3, channels=(4,))
    >>> model.predict(np.zeros((1, 2, 8, 8, 1), np.float32)).shape
    (1, 3, 8, 8, 1)
    """

    def __init__(
        self,
        n_in: int,
        n_out: int,
        channels: Sequence[int] = (32, 32),
        kernel_size: int = 3,
        block: int = 4,
        seed: int = 0,
    ) -> None:
        self.n_in, self.n_out, self.block = n_in, n_out, block
        self.encoder: list[ConvLSTM] = []
        self.forecaster: list[ConvLSTM] = []
        below = block * block
        for i, count in enumerate(channels):
            key = seed * 1000 + 2 * i
            self.encoder.append(ConvLSTM(below, count, kernel_size, seed=key))
            above = self.forecaster[-1].channels if self.forecaster else 0
            self.forecaster.append(ConvLSTM(above, count, kernel_size, seed=key + 1))
            below = count
        self.head = Conv2d(sum(channels), block * block, 3, seed=seed * 1000 + 999)
        one = Conv2d(sum(channels), 1, 1, seed=seed * 1000 + 999).state_dict()  # one per block
        weight = np.multiply.outer(_interpolation(block), one["weight"][0, 0, 0])
        self.head.load_state_dict({"weight": weight, "bias": one["bias"].repeat(block * block)})

    def forward(self, x: Any) -> Tensor:
        """Map x (N, n_in, H, W, 1) to (N, n_out, H, W, 1)."""
        check_last_axis(self, x, 5, 1)
        n, n_in, height, width, _ = x.shape
        if n_in != self.n_in:
            raise ShapeError(
                f"ConvLSTMForecaster: expected {self.n_in} input images, found {n_in}"
                "; give as many as the model was made for"
            )
        if height % self.block or width % self.block:
            raise ShapeError(
                f"ConvLSTMForecaster: expected rows and columns in multiples of {self.block}, "
                f"found {height} x {width}"
                "; pad or crop the images, or take a smaller block"
            )
        below: Any = space_to_depth(x, block=self.block)
        states = []
        for layer in self.encoder:
            below, state = layer(below)
            states.append(state)
        below, outputs = None, []
        for layer, state in zip(self.forecaster, states, strict=True):
            below, _ = layer(below, state, steps=self.n_out)
            outputs.append(below)
        together = concatenate(*outputs) if len(outputs) > 1 else outputs[0]
        rows, columns, channels = height // self.block, width // self.block, together.shape[-1]
        together = reshape(together, shape=(n * self.n_out, rows, columns, channels))
        together = pad(together, widths=((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
        images = depth_to_space(self.head(together), block=self.block)
        return reshape(images, shape=(n, self.n_out, height, width, 1))


def _interpolation(block: int) -> NDArray[np.float32]:
    """Return each pixel's weights of its block and those around, (block * block, 3, 3).

    They interpolate linearly between the centres of blocks.
    """
    alone = np.eye(9, dtype=np.float32).reshape(1, 3, 3, 9)  # an image for each of the nine
    pixels = resize_bilinear(alone, size=(3 * block, 3 * block)).data[0]
    weights: NDArray[np.float32] = pixels[block:-block, block:-block].reshape(-1, 3, 3)
    return weights
