"""LeNet-5: two convolutions and three linear layers for small pictures.

Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, Gradient-based learning applied to document
recognition, Proceedings of the IEEE 86 (11), 1998.
"""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.pool import MaxPool2d
from daskdl.ops.shape.shape import reshape
from daskdl.tensor import Tensor


class LeNet5(Module, pure=True):
    """LeNet-5 for pictures of 28x28 pixels, with ReLU, max pooling and a linear last layer.

    The paper has scaled tangents, mean pooling and radial basis functions instead. The second
    convolution reads all channels of the first. 61,706 parameters.

    Parameters
    ----------
    classes : int
    channels : int
        Channels of the pictures.
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = LeNet5()
    >>> model.flat.size, model.predict(np.zeros((2, 28, 28, 1), np.float32)).shape
    (61706, (2, 10))
    """

    def __init__(self, classes: int = 10, channels: int = 1, seed: int = 0) -> None:
        self.conv1 = Conv2d(channels, 6, 5, padding=2, seed=5 * seed)
        self.conv2 = Conv2d(6, 16, 5, seed=5 * seed + 1)
        self.pool = MaxPool2d(2)
        self.linear1 = Linear(16 * 5 * 5, 120, seed=5 * seed + 2)
        self.linear2 = Linear(120, 84, seed=5 * seed + 3)
        self.linear3 = Linear(84, classes, seed=5 * seed + 4)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, 28, 28, channels) to logits (N, classes)."""
        x = self.pool(ops.relu(self.conv1(x)))  # (N, 14, 14, 6)
        x = self.pool(ops.relu(self.conv2(x)))  # (N, 5, 5, 16)
        x = reshape(x, shape=(len(x), -1))
        x = ops.relu(self.linear1(x))
        x = ops.relu(self.linear2(x))
        return self.linear3(x)
