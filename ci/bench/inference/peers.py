"""Networks of the inference benchmark that the zoo does not have, as users of PyTorch write them.

SqueezeNet 1.1 (arXiv 1602.07360), VGG-19 (1409.1556), DenseNet-121 (1608.06993), ShuffleNet-v2 1x
(1807.11164) and MobileNet-v2 (1801.04381), with random weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ci.bench.training.peers import Side, convolution


class Sum(nn.Module):
    """Layers with a shortcut."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        """Map (N, C, H, W) to the same shape."""
        return x + self.layers(x)


class Shuffled(nn.Module):
    """A block of ShuffleNet-v2 that keeps the picture's size and half of the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_separable(width // 2, width // 2, 1))

    def forward(self, x: Any) -> Any:
        """Map (N, C, H, W) to the same shape."""
        left, right = x.chunk(2, 1)
        return _mixed(torch.cat([left, self.layers(right)], 1))


class Halved(nn.Module):
    """A block of ShuffleNet-v2 that halves the picture."""

    def __init__(self, below: int, above: int) -> None:
        super().__init__()
        self.left = nn.Sequential(
            *_normed(below, below, 3, 2, below, act=None), *_normed(below, above // 2)
        )
        self.right = nn.Sequential(*_separable(below, above // 2, 2))

    def forward(self, x: Any) -> Any:
        """Map (N, below, H, W) to (N, above, H / 2, W / 2)."""
        return _mixed(torch.cat([self.left(x), self.right(x)], 1))


def _mixed(x: Any) -> Any:
    n, channels, height, width = x.shape
    x = x.view(n, 2, channels // 2, height, width).transpose(1, 2)
    return x.reshape(n, channels, height, width)


def _normed(
    below: int, above: int, size: int = 1, stride: int = 1, groups: int = 1, act: Any = nn.ReLU
) -> list[nn.Module]:
    layers: list[nn.Module] = [
        nn.Conv2d(below, above, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(above),
    ]
    return [*layers, act(inplace=True)] if act else layers


def _separable(below: int, above: int, stride: int) -> list[nn.Module]:
    return [
        *_normed(below, above),
        *_normed(above, above, 3, stride, above, act=None),
        *_normed(above, above),
    ]


def _head(below: int, *between: nn.Module) -> list[nn.Module]:
    return [*between, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(below, 1000)]


def squeezenet() -> nn.Module:
    """Return SqueezeNet 1.1."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 2), nn.ReLU(inplace=True)]
    below = 64
    for i, (squeezed, wide) in enumerate(
        [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
    ):
        if i in (0, 2, 4):
            layers.append(nn.MaxPool2d(3, 2, ceil_mode=True))
        layers.append(
            Side(
                convolution(below, squeezed, 1),
                convolution(squeezed, wide, 1),
                convolution(squeezed, wide, 3),
            )
        )
        below = 2 * wide
    head = [convolution(below, 1000, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.5), *head)


def vgg19() -> nn.Module:
    """Return VGG-19 without batch normalisation."""
    layers: list[nn.Module] = []
    below = 3
    for width, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            layers.append(convolution(below, width, 3))
            below = width
        layers.append(nn.MaxPool2d(2))
    head: list[nn.Module] = [nn.Flatten()]
    for inside in (512 * 49, 4096):
        head += [nn.Linear(inside, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5)]
    return nn.Sequential(*layers, *head, nn.Linear(4096, 1000))


def densenet121(growth: int = 32) -> nn.Module:
    """Return DenseNet-121."""
    layers: list[nn.Module] = [*_normed(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    below = 64
    for i, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            new = nn.Sequential(
                nn.BatchNorm2d(below),
                nn.ReLU(inplace=False),
                *_normed(below, 4 * growth),
                nn.Conv2d(4 * growth, growth, 3, 1, 1, bias=False),
            )
            layers.append(Side(nn.Identity(), nn.Identity(), new))
            below += growth
        layers += [nn.BatchNorm2d(below), nn.ReLU(inplace=True)]
        if i < 3:
            layers += [nn.Conv2d(below, below // 2, 1, bias=False), nn.AvgPool2d(2)]
            below //= 2
    return nn.Sequential(*layers, *_head(below))


def shufflenet() -> nn.Module:
    """Return ShuffleNet-v2 of width 1."""
    layers: list[nn.Module] = [*_normed(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
    below = 24
    for width, count in ((116, 3), (232, 7), (464, 3)):
        layers += [Halved(below, width), *(Shuffled(width) for _ in range(count))]
        below = width
    return nn.Sequential(*layers, *_normed(below, 1024), *_head(1024))


def mobilenet() -> nn.Module:
    """Return MobileNet-v2 of width 1."""
    layers: list[nn.Module] = _normed(3, 32, 3, 2, act=nn.ReLU6)
    below = 32
    for expansion, width, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):  # fmt: skip
        for i in range(count):
            inside, step = expansion * below, stride if i == 0 else 1
            block = _normed(below, inside, act=nn.ReLU6) if expansion > 1 else []
            block += _normed(inside, inside, 3, step, inside, act=nn.ReLU6)
            block += _normed(inside, width, act=None)
            layers += [Sum(*block)] if step == 1 and below == width else block
            below = width
    return nn.Sequential(*layers, *_normed(below, 1280, act=nn.ReLU6), *_head(1280))
