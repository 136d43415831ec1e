"""A small problem of ratings, whose model has tables of users and items."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.data import SampleSet
from daskdl.nn import BatchNorm, Embedding, Linear, Module, MSELoss, Sequential
from daskdl.optim import Adam, Method
from daskdl.tensor import Tensor
from daskdl.train import Trainer

USERS, ITEMS, RATINGS = 90, 40, 53


class Recommender(Module):
    """Two tables, one of which is used twice, a batch norm and a layer."""

    def __init__(self, sparse: bool = True) -> None:
        self.users = Embedding(USERS, 6, seed=1, sparse=sparse)
        self.layers = Sequential(BatchNorm(13), Linear(13, 1, seed=2))
        self.items = Embedding(ITEMS, 7, seed=3, padding_index=0, sparse=sparse)

    def forward(self, pairs: Any) -> Tensor:
        """Map (user, item, another item) to a rating."""
        ids = np.asarray(pairs).astype(int)
        items = self.items(ids[:, 1]) - self.items(ids[:, 2])
        y: Tensor = self.layers(ops.concatenate(self.users(ids[:, 0]), items, axis=1))
        return y


def ratings(partitions: int = 4, n: int = RATINGS) -> SampleSet:
    """Return ratings of which some users have many; the last input is their number."""
    rng = np.random.default_rng(0)
    x = np.stack(
        [
            rng.zipf(1.3, n) % USERS,
            rng.integers(0, ITEMS, n),
            rng.integers(0, ITEMS, n),
            np.zeros(n),
            np.arange(n),
        ],
        axis=1,
    ).astype(np.float32)
    y = np.sin(x[:, :1] + x[:, 1:2]).astype(np.float32)
    return SampleSet.from_arrays(x=x, y=y, partitions=partitions)


def fit_ratings(
    samples: SampleSet | None = None,
    method: Method | None = None,
    sparse: bool = True,
    **options: Any,
) -> Trainer:
    """Fit and return the trainer."""
    trainer = Trainer(Recommender(sparse), MSELoss(), method or Adam(0.05), seed=5)
    options.setdefault("batch_size", 8)
    if "iterations" not in options:
        options.setdefault("epochs", 2)
    trainer.fit(samples or ratings(), progress=False, **options)
    return trainer


def digest_of_all(trainer: Trainer) -> str:
    """Return what two runs have in common when weights and tables are the same bits."""
    state = trainer.model.state_dict()
    return hashlib.sha256(b"".join(state[name].tobytes() for name in sorted(state))).hexdigest()
