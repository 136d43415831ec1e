"""The networks of the training benchmark in PyTorch, as its users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as f

from ci.bench.kernels.peers import convlstm_steps
from daskdl.models.inception import HALVED, MODULES


class Bottleneck(nn.Module):
    """A residual block of three convolutions."""

    def __init__(self, below: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(below, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(4 * width)
        self.shortcut = nn.Identity()
        if stride > 1 or below != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(below, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x: Any) -> Any:
        """Map (N, below, H, W) to (N, 4 * width, H / stride, W / stride)."""
        y = f.relu(self.norm1(self.conv1(x)), inplace=True)
        y = f.relu(self.norm2(self.conv2(y)), inplace=True)
        y = self.norm3(self.conv3(y))
        y += self.shortcut(x)
        return f.relu(y, inplace=True)


def resnet50(classes: int = 1000) -> nn.Module:
    """Return ResNet-50, as torchvision has it."""
    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    below = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            layers.append(Bottleneck(below, 64 << stage, 2 if stage and not i else 1))
            below = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(below, classes))


def lenet5(classes: int = 10) -> nn.Module:
    """Return LeNet-5 for pictures of 28x28 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(inplace=True),
        nn.Linear(120, 84),
        nn.ReLU(inplace=True),
        nn.Linear(84, classes),
    )


def convolution(below: int, above: int, size: int, stride: int = 1) -> nn.Module:
    """Return a convolution that keeps the picture's size, with a ReLU."""
    return nn.Sequential(nn.Conv2d(below, above, size, stride, size // 2), nn.ReLU(inplace=True))


class Side(nn.Module):
    """A first part, and branches over its output whose channels are concatenated."""

    def __init__(self, first: nn.Module, *branches: nn.Module) -> None:
        super().__init__()
        self.first, self.branches = first, nn.ModuleList(branches)

    def forward(self, x: Any) -> Any:
        """Map (N, C, H, W) to the branches' channels."""
        x = self.first(x)
        return torch.cat([branch(x) for branch in self.branches], 1)


def inception_v1(classes: int = 1000) -> nn.Module:
    """Return GoogLeNet without auxiliary heads."""
    halve = nn.MaxPool2d(3, 2, ceil_mode=True)
    lrn = nn.LocalResponseNorm(5, 1e-4, 0.75, 1.0)
    layers = [convolution(3, 64, 7, 2), halve, lrn]
    layers += [convolution(64, 64, 1), convolution(64, 192, 3), lrn, halve]
    below = 192
    for name, (one, three, five, pooled) in MODULES.items():
        branches = (
            convolution(below, one, 1),
            nn.Sequential(convolution(below, three[0], 1), convolution(*three, 3)),
            nn.Sequential(convolution(below, five[0], 1), convolution(*five, 5)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), convolution(below, pooled, 1)),
        )
        layers.append(Side(nn.Identity(), *branches))
        below = one + three[1] + five[1] + pooled
        if name in HALVED:
            layers.append(halve)
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(below, classes)
    )


class NeuMF(nn.Module):
    """Neural collaborative filtering of pairs (N, 2)."""

    def __init__(self, users: int, items: int, sparse: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.Embedding(count, width, sparse=sparse)
            for width in (64, 128)
            for count in (users, items)
        )
        widths = (256, 256, 128, 64)
        self.linear = nn.ModuleList(map(nn.Linear, widths, widths[1:]))
        self.head = nn.Linear(128, 1)

    def forward(self, pairs: Any) -> Any:
        """Return logits (N,)."""
        users, items = pairs.unbind(1)
        product = self.tables[0](users) * self.tables[1](items)
        y = torch.cat([self.tables[2](users), self.tables[3](items)], 1)
        for layer in self.linear:
            y = f.relu(layer(y), inplace=True)
        return self.head(torch.cat([product, y], 1))[:, 0]


class TextClassifier(nn.Module):
    """Classifier of ids (N, T)."""

    def __init__(self, words: int, classes: int, features: int, channels: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, features, padding_idx=0)
        self.encoder = nn.LSTM(features, channels, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.hidden, self.head = nn.Linear(channels, channels), nn.Linear(channels, classes)

    def forward(self, ids: Any) -> Any:
        """Return log-probabilities (N, classes)."""
        states, _ = self.encoder(self.dropout(self.embedding(ids)))
        y = f.relu(self.dropout(self.hidden(states[:, -1])), inplace=True)
        return f.log_softmax(self.head(y), 1)


class ConvLSTM(nn.Module):
    """A layer over (T, N, below, H, W), or over steps without input."""

    def __init__(self, below: int, channels: int) -> None:
        super().__init__()
        self.input = nn.Conv2d(below, 4 * channels, 3, padding=1) if below else None
        self.state = nn.Conv2d(channels, 4 * channels, 3, padding=1, bias=not below)
        self.channels = channels

    def forward(self, frames: Any, state: Any, steps: int) -> tuple[Any, Any]:
        """Return all outputs (T, N, channels, H, W) and the last state."""
        parts: Any = [None] * steps
        if frames is not None:
            parts = self.input(frames.flatten(0, 1)).unflatten(0, frames.shape[:2])
        outputs, state = convlstm_steps(parts, *state, self.state)
        return torch.stack(outputs), state


class ConvLSTMForecaster(nn.Module):
    """Encoder and forecaster, from (T, N, 1, H, W) to the next T steps."""

    def __init__(self, steps: int, channels: Sequence[int], block: int) -> None:
        super().__init__()
        self.steps, self.block = steps, block
        below = [block * block, *channels]
        self.encoder = nn.ModuleList(map(ConvLSTM, below, channels))
        self.forecaster = nn.ModuleList(map(ConvLSTM, [0, *channels], channels))
        self.head = nn.Conv2d(sum(channels), block * block, 3, padding=1, padding_mode="replicate")

    def forward(self, x: Any) -> Any:
        """Return images of the shape of x."""
        n = x.shape[1]
        below: Any = f.pixel_unshuffle(x.flatten(0, 1), self.block).unflatten(0, (-1, n))
        states, outputs = [], []
        for layer in self.encoder:
            zero = below.new_zeros(n, layer.channels, *below.shape[3:])
            below, state = layer(below, (zero, zero), self.steps)
            states.append(state)
        below = None
        for layer, state in zip(self.forecaster, states, strict=True):
            below, _ = layer(below, state, self.steps)
            outputs.append(below)
        images = self.head(torch.cat(outputs, 2).flatten(0, 1))
        return f.pixel_shuffle(images, self.block).unflatten(0, (-1, n))
