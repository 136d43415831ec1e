"""Torch modules and samples for them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from daskdl.data import SampleSet
from daskdl.nn import CrossEntropyLoss
from daskdl.optim import Adam
from daskdl.torch import TorchModule
from daskdl.train import Trainer


def convolutional() -> torch.nn.Module:
    """Return a network with running statistics, a counter and dropout."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 6 * 6, 4),
    )


class Recurrent(torch.nn.Module):
    """An LSTM over token ids, whose embedding and head share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(11, 6)
        self.lstm = torch.nn.LSTM(6, 6, batch_first=True, num_layers=2, dropout=0.2)
        self.head = torch.nn.Linear(6, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        outputs, _ = self.lstm(self.table(ids))
        return self.head(outputs[:, -1])


def recurrent() -> torch.nn.Module:
    torch.manual_seed(1)
    return Recurrent()


def images(n: int = 42, partitions: int = 4, size: int = 6) -> SampleSet:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3, size, size)).astype(np.float32)
    return SampleSet.from_arrays(x=x, y=rng.integers(0, 4, n), partitions=partitions)


def sentences(n: int = 42, partitions: int = 4, classes: int = 4) -> SampleSet:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 11, (n, 5))
    return SampleSet.from_arrays(x=x, y=x.sum(1) % classes, partitions=partitions)


def fitted(net: torch.nn.Module, samples: SampleSet, loss: Any = None, **options: Any) -> Trainer:
    """Fit a module for two epochs and return the trainer."""
    module = {name: options.pop(name) for name in ("output", "compile") if name in options}
    model = TorchModule(net, **module)
    trainer = Trainer(model, loss or CrossEntropyLoss(), Adam(1e-2), seed=5)
    trainer.fit(samples, epochs=2, batch_size=8, progress=False, **options)
    return trainer


def digest(trainer: Trainer) -> str:
    return hashlib.sha256(trainer.model.vector.tobytes()).hexdigest()
