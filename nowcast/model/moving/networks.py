"""Networks that correct the logits of probabilities; untrained networks change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from daskdl.nn import Conv2d, ConvLSTM, Module, TrajGRU
from daskdl.nn.pointwise.random import Dropout
from daskdl.ops.pointwise.activations import relu
from daskdl.ops.pool.pooling import avg_pool2d
from daskdl.ops.pool.resample import resize_bilinear
from daskdl.ops.shape.shape import concatenate, pad, stack
from daskdl.tensor import Tensor
from nowcast.lagrangian.exceedance import THRESHOLDS
from nowcast.model.moving.features import CHANNELS, FRAMES

#: Channels of each level; the grid of each level is half as fine as the one before.
UNETS = {"small": (24, 48, 96), "rainnet": (32, 64, 128, 256)}
RECURRENT = (24, 48, 64)


class CorrectionNetwork(Module):
    """A network that corrects the logits that follow its inputs.

    - ``body``: from inputs (N, H, W, `CHANNELS`) to features (N, H, W, body.channels).
    """

    def __init__(self, body: UNet | Recurrent) -> None:
        self.body = body
        self.head = Conv2d(body.channels, len(THRESHOLDS), 1, seed=0)
        for parameter in self.head.parameters():
            parameter.data[...] = 0

    def forward(self, x: Any) -> Tensor:
        """Return the corrected logits of x, see `nowcast.model.moving.samples.MovingRecipe`."""
        return self.correction(x[..., :CHANNELS]) + x[..., CHANNELS:]

    def correction(self, x: Any) -> Tensor:
        """Return the corrections of the logits, (N, H, W, threshold), from the inputs alone."""
        made: Tensor = self.head(self.body(x))
        return made


class Averaged(Module):
    """The mean of several corrections, or a fraction of it.

    - ``part``: factor of the mean, from 0 to 1.
    """

    def __init__(self, networks: Sequence[CorrectionNetwork], part: float = 1.0) -> None:
        self.networks, self.part = list(networks), part

    def forward(self, x: Any) -> Tensor:
        """Return the corrected logits, as `CorrectionNetwork` does."""
        return self.correction(x[..., :CHANNELS]) + x[..., CHANNELS:]

    def correction(self, x: Any) -> Tensor:
        """Return the corrections of the logits, (N, H, W, threshold), from the inputs alone."""
        total = self.networks[0].correction(x)
        for network in self.networks[1:]:
            total = total + network.correction(x)
        return total * np.float32(self.part / len(self.networks))


class UNet(Module):
    """An encoder and a decoder with links between levels of one size.

    O. Ronneberger et al., arXiv 1505.04597; with means instead of maxima, and linear interpolation
    instead of transposed convolutions, which leave a checkerboard. With widths of 32 to 256 it is
    close to RainNet (G. Ayzel et al., Geosci. Model Dev. 13 (2020), 2631-2644).

    - ``widths``: channels of each level.
    - ``dropout``: dropout rate at the coarsest level.
    """

    def __init__(self, widths: Sequence[int], dropout: float = 0.1, seed: int = 0) -> None:
        self.channels, key = widths[0], 1000 * seed
        self.enter = Conv2d(CHANNELS, widths[0], 3, padding=1, seed=key)
        self.down: list[Conv2d] = []
        self.up: list[Conv2d] = []
        for k, (fine, coarse) in enumerate(pairwise(widths)):
            self.down += [
                Conv2d(fine, coarse, 3, padding=1, seed=key + 4 * k + 1),
                Conv2d(coarse, coarse, 3, padding=1, seed=key + 4 * k + 2),
            ]
            self.up += [
                Conv2d(fine + coarse, fine, 3, padding=1, seed=key + 4 * k + 3),
                Conv2d(fine, fine, 3, padding=1, seed=key + 4 * k + 4),
            ]
        self.dropout = Dropout(dropout)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, `CHANNELS`) to (N, H, W, widths[0]); any H and W."""
        x = relu(self.enter(x))
        levels = [x]
        for first, second in zip(self.down[::2], self.down[1::2], strict=True):
            x = relu(second(relu(first(_halved(x)))))
            levels.append(x)
        x = self.dropout(x)
        for k in range(len(levels) - 2, -1, -1):
            x = _joined(levels[k], x)
            x = relu(self.up[2 * k + 1](relu(self.up[2 * k](x))))
        return x


class Recurrent(Module):
    """Recurrent layers that read the frames in turn; each level halves the grid before it.

    This is the encoder of X. Shi et al., arXiv 1706.03458; its states are joined from the coarsest
    to the finest level. Frames are in the moving frame already; the other maps and the numbers are
    inputs of each step.

    - ``widths``: channels of each level.
    """

    def __init__(self, layer: str, widths: Sequence[int] = RECURRENT, seed: int = 0) -> None:
        self.channels, key = widths[0], 1000 * seed
        make: Any = ConvLSTM if layer == "convlstm" else TrajGRU
        self.enter = Conv2d(CHANNELS - FRAMES + 1, widths[0], 3, padding=1, seed=key)
        self.layers: list[Module] = []
        self.down: list[Conv2d] = []
        self.up: list[Conv2d] = []
        for k, width in enumerate(widths):
            self.layers.append(make(width, width, seed=key + 4 * k + 1))
            if k + 1 < len(widths):
                coarse = widths[k + 1]
                self.down.append(Conv2d(width, coarse, 3, padding=1, seed=key + 4 * k + 2))
                self.up.append(Conv2d(width + coarse, width, 3, padding=1, seed=key + 4 * k + 3))

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, `CHANNELS`) to (N, H, W, widths[0]); any H and W."""
        still = x[..., FRAMES:]
        steps = [relu(self.enter(concatenate(x[..., k : k + 1], still))) for k in range(FRAMES)]
        states = []
        for k, layer in enumerate(self.layers):
            if k:
                steps = [relu(self.down[k - 1](_halved(step))) for step in steps]
            outputs, _ = layer(stack(*steps, axis=1))
            steps = [outputs[:, t] for t in range(FRAMES)]
            states.append(steps[-1])
        made = states[-1]
        for k in range(len(states) - 2, -1, -1):
            made = relu(self.up[k](_joined(states[k], made)))
        return made


def network(name: str, seed: int) -> CorrectionNetwork:
    """Return an untrained network by its name in `nowcast.model.settings.TrainSettings`."""
    if name in UNETS:
        return CorrectionNetwork(UNet(UNETS[name], seed=seed))
    return CorrectionNetwork(Recurrent(name, seed=seed))


def _halved(x: Any) -> Any:
    """Return means of 2 x 2; an odd last row or column is repeated."""
    height, width = x.shape[1:3]
    if height % 2 or width % 2:
        x = pad(x, widths=((0, 0), (0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return avg_pool2d(x, kernel_size=(2, 2))


def _joined(fine: Any, coarse: Any) -> Tensor:
    """Return a level joined with the next coarser one, which is interpolated linearly."""
    height, width = fine.shape[1:3]
    doubled = resize_bilinear(coarse, size=(2 * coarse.shape[1], 2 * coarse.shape[2]))
    made: Tensor = concatenate(fine, doubled[:, :height, :width])
    return made
