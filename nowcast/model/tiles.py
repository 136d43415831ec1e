"""Tiles: a network applied to a grid that is too large for one pass, such as a continent."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl import ops
from daskdl.models import ConvLSTMForecaster
from daskdl.nn import Module
from daskdl.tensor import Tensor

#: Cells along the side of a tile.
TILE = 512


class _Frames(Module):
    """A forecaster with frames as channels, (N, H, W, n_in) -> (N, H, W, n_out)."""

    def __init__(self, network: ConvLSTMForecaster) -> None:
        self.network = network

    def forward(self, x: Any) -> Tensor:
        """Map frames to the frames that follow."""
        y = self.network(ops.transpose(x, axes=(0, 3, 1, 2))[..., None])
        return ops.transpose(y[..., 0], axes=(0, 2, 3, 1))


def by_tiles(network: ConvLSTMForecaster, frames: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a network's output (n_out, y, x) for frames (n_in, y, x), equal up to rounding.

    Each tile is computed with all cells around it that the network sees, so only one tile needs
    memory besides the frames; y and x are multiples of the network's block.
    """
    steps = network.n_in + network.n_out + 2 * len(network.encoder)
    reach = network.encoder[0].weight_state.shape[1] // 2
    block = network.block
    tile = TILE // block * block
    result: NDArray[np.float32] = _Frames(network).predict(
        frames, tile={1: tile, 2: tile}, channel=0, overlap=block * (reach * steps + 2)
    )
    return result
