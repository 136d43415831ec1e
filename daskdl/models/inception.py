"""Inception-v1, GoogLeNet: modules of parallel convolutions of several sizes.

C. Szegedy et al., Going Deeper with Convolutions, arXiv 1409.4842: 22 layers, without batch
normalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from daskdl import ops
from daskdl.nn import init
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.losses.crossentropy import CrossEntropyLoss
from daskdl.nn.losses.loss import Loss
from daskdl.nn.norm import LocalResponseNorm
from daskdl.nn.pointwise.random import Dropout
from daskdl.nn.pool import AvgPool2d, GlobalAvgPool, MaxPool2d
from daskdl.tensor import Tensor

#: Channels in each module (table 1): 1x1; 1x1 and 3x3; 1x1 and 5x5; 1x1 after max pooling.
MODULES = {
    "3a": (64, (96, 128), (16, 32), 32),
    "3b": (128, (128, 192), (32, 96), 64),
    "4a": (192, (96, 208), (16, 48), 64),
    "4b": (160, (112, 224), (24, 64), 64),
    "4c": (128, (128, 256), (24, 64), 64),
    "4d": (112, (144, 288), (32, 64), 64),
    "4e": (256, (160, 320), (32, 128), 128),
    "5a": (256, (160, 320), (32, 128), 128),
    "5b": (384, (192, 384), (48, 128), 128),
}
#: Modules before a pooling that halves the picture, and modules before an auxiliary classifier.
HALVED, AUXILIARY = ("3b", "4e"), ("4a", "4d")


class Inception(Module, pure=True):
    """Four branches over the same picture, with concatenated channels (figure 2b).

    Arguments are channels: ``one`` of the 1x1 convolution; ``three`` and ``five`` of the 1x1
    convolution before the 3x3 or 5x5 one, and of that one; ``pooled`` of the 1x1 convolution
    after 3x3 max pooling.
    """

    #: Size of the largest convolution, and the activation after each convolution.
    largest: ClassVar[int] = 5
    activation: ClassVar[Any] = staticmethod(ops.relu)

    def __init__(
        self, below: int, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int
    ) -> None:
        made = self.convolution
        self.one = made(below, one)
        self.three_before, self.three = made(below, three[0]), made(three[0], three[1], 3)
        self.five_before, self.five = made(below, five[0]), made(five[0], five[1], self.largest)
        self.pool, self.pooled = MaxPool2d(3, 1, padding=1), made(below, pooled)
        self.channels = one + three[1] + five[1] + pooled

    @staticmethod
    def convolution(below: int, above: int, size: int = 1) -> Module:
        """Return a ``size`` x ``size`` convolution with padding that keeps rows and columns."""
        return Conv2d(below, above, size, padding=size // 2)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, below) to (N, H, W, one + three[1] + five[1] + pooled)."""
        f = self.activation
        together: Tensor = ops.concatenate(
            f(self.one(x)),
            f(self.three(f(self.three_before(x)))),
            f(self.five(f(self.five_before(x)))),
            f(self.pooled(self.pool(x))),
        )
        return together


class AuxiliaryClassifier(Module, pure=True):
    """Auxiliary classifier of 14x14 pixels in the middle, to bring gradients there."""

    def __init__(self, below: int, classes: int) -> None:
        self.pool = AvgPool2d(5, 3)
        self.conv = Conv2d(below, 128, 1)
        self.linear1 = Linear(4 * 4 * 128, 1024)
        self.dropout = Dropout(0.7)
        self.linear2 = Linear(1024, classes)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, 14, 14, below) to logits (N, classes)."""
        x = ops.relu(self.conv(self.pool(x)))
        x = ops.relu(self.linear1(ops.reshape(x, shape=(len(x), -1))))
        return self.linear2(self.dropout(x))


def stacked(
    module: Callable[..., Any], classifier: Callable[..., Any], classes: int | None
) -> tuple[list[Any], list[Any], int]:
    """Return the nine modules, the auxiliary classifiers, and the channels of the last module.

    There are no classifiers if ``classes`` is None.
    """
    stack, heads, below = [], [], 192
    for name, widths in MODULES.items():
        stack.append(module(below, *widths))
        below = stack[-1].channels
        if classes is not None and name in AUXILIARY:
            heads.append(classifier(below, classes))
    return stack, heads, below


def through(
    stack: Sequence[Module],
    heads: Sequence[Module],
    x: Any,
    halving: Sequence[Callable[[Any], Any]],
) -> tuple[Any, list[Any]]:
    """Pass x through the nine modules; return the result, and the auxiliary classifiers' logits.

    ``halving`` are the poolings after the modules of `HALVED`.
    """
    waiting, poolings, of_heads = iter(heads), dict(zip(HALVED, halving, strict=True)), []
    for name, module in zip(MODULES, stack, strict=True):
        x = module(x)
        if name in poolings:
            x = poolings[name](x)
        if name in AUXILIARY and (head := next(waiting, None)) is not None:
            of_heads.append(head(x))
    return x, of_heads


class InceptionV1(Module, pure=True):
    """GoogLeNet for pictures of 224x224 pixels, or of any other size without auxiliary heads.

    Parameters
    ----------
    classes : int
    channels : int
        Channels of the pictures.
    auxiliary : bool
        Whether to add two classifiers in the middle. In training the result is then a tuple of
        three logits for :class:`AuxiliaryLoss`; in inference it is the last one.
    dropout : float
        Rate before the last layer.
    seed : int
        Seed of the initial weights (Glorot); biases start at 0.2, as in Caffe's GoogLeNet.

    Examples
    --------
    >>> model = InceptionV1(classes=10)
    >>> model.predict(np.zeros((1, 32, 32, 3), np.float32)).shape
    (1, 10)
    """

    def __init__(
        self,
        classes: int = 1000,
        channels: int = 3,
        auxiliary: bool = False,
        dropout: float = 0.4,
        seed: int = 0,
    ) -> None:
        self.conv1 = Conv2d(channels, 64, 7, 2, padding=3)
        self.conv2_before, self.conv2 = Conv2d(64, 64, 1), Conv2d(64, 192, 3, padding=1)
        self.lrn = LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=1.0)
        self.pool = MaxPool2d(3, 2, ceil_mode=True)
        self.stack, self.heads, below = stacked(
            Inception, AuxiliaryClassifier, classes if auxiliary else None
        )
        self.average, self.dropout = GlobalAvgPool(), Dropout(dropout)
        self.linear = Linear(below, classes)
        for i, (name, parameter) in enumerate(self.named_parameters()):
            if name.endswith("weight"):
                init.xavier_uniform(parameter, seed=1000 * seed + i)
            else:
                init.constant(parameter, 0.0 if name == "linear.bias" else 0.2)

    def forward(self, x: Any) -> Any:
        """Map x (N, H, W, channels) to logits (N, classes); in training of all heads."""
        x = self.lrn(self.pool(ops.relu(self.conv1(x))))
        x = self.lrn(ops.relu(self.conv2(ops.relu(self.conv2_before(x)))))
        x = self.pool(x)
        heads = self.heads if self.training else ()
        x, of_heads = through(self.stack, heads, x, (self.pool, self.pool))
        logits = self.linear(self.dropout(self.average(x)))
        return (logits, *of_heads) if of_heads else logits


class AuxiliaryLoss(Loss):
    """Cross entropy of the last logits, plus a share of each auxiliary head's cross entropy.

    Parameters
    ----------
    share : float
        Weight of each auxiliary loss; 0.3 in the paper.
    smoothing : float
        As in :class:`CrossEntropyLoss`.

    Examples
    --------
    >>> logits, y = np.zeros((2, 4), np.float32), np.array([0, 3])
    >>> loss = AuxiliaryLoss(share=0.3)
    >>> round(float(loss((logits, logits, logits), y)), 4), round(1.6 * np.log(4), 4)
    (2.2181, np.float64(2.2181))
    """

    def __init__(self, share: float = 0.3, smoothing: float = 0.0) -> None:
        self.share, self.loss = share, CrossEntropyLoss(smoothing=smoothing)

    def forward(self, logits: Any, labels: Any, sample_weight: Any = None) -> Tensor:
        """Compare logits, or a tuple of them, with labels (N,)."""
        if not isinstance(logits, tuple):
            return self.loss(logits, labels, sample_weight)
        last, *heads = logits
        total: Tensor = self.loss(last, labels, sample_weight)
        for head in heads:
            total = total + self.share * self.loss(head, labels, sample_weight)
        return total
