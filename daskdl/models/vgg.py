"""VGG-16: thirteen 3x3 convolutions in five stages, and three linear layers.

K. Simonyan and A. Zisserman, Very Deep Convolutional Networks, arXiv 1409.1556, configuration D.
"""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn import init
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.pointwise.random import Dropout
from daskdl.tensor import Tensor

#: Channels of the convolutions in each stage; 2x2 max pooling follows each stage.
STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
#: Places of the convolutions in torchvision's list of layers, with ReLUs and poolings.
PLACES = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)


def convolutions(channels: int = 3, width: float = 1.0) -> list[Conv2d]:
    """Return the thirteen convolutions; ``width`` is their share of the paper's channels."""
    layers, below = [], channels
    for full in (full for stage in STAGES for full in stage):
        layers.append(Conv2d(below, int(full * width), 3, padding=1))
        below = int(full * width)
    return layers


def initialise(model: Module, seed: int) -> None:
    """Initialise convolutions by He's method, linear layers by small numbers, biases by zeros."""
    for i, (name, parameter) in enumerate(model.named_parameters()):
        if parameter.ndim == 4:
            init.kaiming_normal(
                parameter, mode="fan_out", nonlinearity="relu", seed=1000 * seed + i
            )
        elif parameter.ndim == 2:
            init.normal(parameter, 0, 0.01, seed=1000 * seed + i)
        elif name.endswith("bias"):
            init.zeros(parameter)


class VGG16Trunk(Module, pure=True):
    """VGG-16 without its last layer, (N, 224, 224, C) -> (N, hidden)."""

    def __init__(
        self, channels: int = 3, dropout: float = 0.5, width: float = 1.0, hidden: int = 4096
    ) -> None:
        self.features = hidden
        self.convolutions = convolutions(channels, width)
        last = int(STAGES[-1][-1] * width)
        self.linear1, self.linear2 = Linear(7 * 7 * last, hidden), Linear(hidden, hidden)
        self.dropout = Dropout(dropout)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, 224, 224, C) to (N, hidden)."""
        layers = iter(self.convolutions)
        for stage in STAGES:
            for _ in stage:
                x = ops.relu(next(layers)(x))
            x = ops.max_pool2d(x, kernel_size=(2, 2), stride=(2, 2))
        # channels first, so that published weights of the linear layers fit
        x = ops.reshape(ops.transpose(x, axes=(0, 3, 1, 2)), shape=(len(x), -1))
        x = self.dropout(ops.relu(self.linear1(x)))
        return self.dropout(ops.relu(self.linear2(x)))


class VGG16(Module, pure=True):
    """VGG-16 for pictures of 224 x 224 pixels.

    Parameters
    ----------
    classes : int
    channels : int
        Channels of the pictures.
    dropout : float
    width : float
        Channels as a share of the paper's.
    hidden : int
        Width of the hidden linear layers.
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = VGG16(classes=5, width=0.125, hidden=16)
    >>> sum(p.data.size for p in model.parameters())
    281117
    """

    def __init__(
        self,
        classes: int = 1000,
        channels: int = 3,
        dropout: float = 0.5,
        width: float = 1.0,
        hidden: int = 4096,
        seed: int = 0,
    ) -> None:
        self.trunk = VGG16Trunk(channels, dropout, width, hidden)
        self.linear = Linear(hidden, classes)
        initialise(self, seed)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, 224, 224, C) to logits (N, classes)."""
        return self.linear(self.trunk(x))
