"""GoogLeNet with batch norm, in the layout of torchvision and its published weights.

Differences from :class:`daskdl.models.InceptionV1`, the paper's network: each convolution has a
batch norm in place of a bias, 5x5 convolutions are 3x3, and there is no local response norm.
"""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.models.inception import Inception, stacked, through
from daskdl.models.mobilenet import ConvolutionBlock
from daskdl.nn import init
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.pointwise.random import Dropout
from daskdl.nn.pool import AdaptiveAvgPool2d, GlobalAvgPool
from daskdl.tensor import Tensor


def _convolution(below: int, above: int, size: int = 1, stride: int = 1) -> ConvolutionBlock:
    return ConvolutionBlock(below, above, size, stride, eps=1e-3)


class NormedInception(Inception, pure=True):
    """Four branches as in :class:`Inception`, with normed convolutions up to 3x3."""

    largest, convolution = 3, staticmethod(_convolution)
    activation = staticmethod(lambda x: x)  # the convolutions have their own


class NormedClassifier(Module, pure=True):
    """Auxiliary classifier in the middle of the network, to bring gradients there."""

    def __init__(self, below: int, classes: int) -> None:
        self.pool = AdaptiveAvgPool2d(4)
        self.convolution = _convolution(below, 128)
        self.linear1, self.linear2 = Linear(4 * 4 * 128, 1024), Linear(1024, classes)
        self.dropout = Dropout(0.7)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, below) to logits (N, classes)."""
        x = self.convolution(self.pool(x))
        # channels first, so that published weights of the linear layers fit
        x = ops.reshape(ops.transpose(x, axes=(0, 3, 1, 2)), shape=(len(x), -1))
        return self.linear2(self.dropout(ops.relu(self.linear1(x))))


class GoogLeNet(Module, pure=True):
    """GoogLeNet with batch norm, for pictures of any size from 15 x 15 pixels.

    ``load_state_dict(state, names="torch")`` loads weights of torchvision's ``googlenet``; set
    ``auxiliary=True`` if the file has the two auxiliary classifiers.

    Parameters
    ----------
    classes, channels, auxiliary, dropout
        As in :class:`InceptionV1`.
    seed : int
        Seed of the initial weights, normal with a standard deviation of 0.01; biases are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from daskdl.models import GoogLeNet
    >>> GoogLeNet(classes=5).eval()(np.zeros((1, 32, 32, 3), np.float32)).shape
    (1, 5)
    """

    def __init__(
        self,
        classes: int = 1000,
        channels: int = 3,
        auxiliary: bool = False,
        dropout: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.conv1 = _convolution(channels, 64, 7, 2)
        self.conv2, self.conv3 = _convolution(64, 64), _convolution(64, 192, 3)
        self.stack, self.heads, below = stacked(
            NormedInception, NormedClassifier, classes if auxiliary else None
        )
        self.average, self.dropout = GlobalAvgPool(), Dropout(dropout)
        self.linear = Linear(below, classes)
        for i, (name, parameter) in enumerate(self.named_parameters()):
            if name.endswith("weight") and parameter.ndim > 1:
                init.normal(parameter, deviation=0.01, seed=1000 * seed + i)
            elif "linear" in name:
                init.constant(parameter, 0.0)

    def forward(self, x: Any) -> Any:
        """Map x (N, H, W, channels) to logits (N, classes); in training of all heads."""
        x = _halved(self.conv1(x), 3)
        x = _halved(self.conv3(self.conv2(x)), 3)
        heads = self.heads if self.training else ()
        x, of_heads = through(
            self.stack, heads, x, (lambda x: _halved(x, 3), lambda x: _halved(x, 2))
        )
        logits = self.linear(self.dropout(self.average(x)))
        return (logits, *of_heads) if of_heads else logits


def _halved(x: Any, size: int) -> Tensor:
    """Return maxima over windows of ``size`` pixels, with stride 2."""
    y: Tensor = ops.max_pool2d(x, kernel_size=(size, size), stride=(2, 2), ceil_mode=True)
    return y
