"""Samples, jobs and partitions for tests of steps, and ratings for a model with tables."""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.data import SampleSet
from daskdl.data.recipe import Arrays, Recipe
from daskdl.nn import BatchNorm, Embedding, Linear, Module, MSELoss, Sequential
from daskdl.optim import SGD, Adam, Method
from daskdl.tensor import Tensor
from daskdl.train import Trainer
from daskdl.train.engines.job import Job, Tools, pack
from tests.daskdl.train.runs import fit

N = 11


def new_job(
    loss: Callable[..., Any] | None = None, threads: int = 1, **options: Any
) -> tuple[Job, Module]:
    model = options.pop("model") if "model" in options else Linear(3, 2, seed=4)
    tools = Tools(
        loss or MSELoss(), model=model, optimizer=options.pop("optimizer", SGD(0.5)), **options
    )
    return pack(tools, seed=7, threads=threads), model


def samples(n: int = N) -> Arrays:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    return Arrays({"x": x.astype(np.float32), "y": y.astype(np.float32)})


def by_hand(model: Linear, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the sum over samples of the mean squared error and its gradient, in float64."""
    parameters = {name: p.data.astype(float) for name, p in model.named_parameters()}
    error = x.astype(float) @ parameters["weight"].T + parameters["bias"] - y
    gradients = {"weight": error.T @ x, "bias": error.sum(0)}  # 2 / 2 outputs
    flat = np.concatenate([gradients[name].ravel() for name in parameters])
    return float((error**2).mean(1).sum()), flat


def raising(prediction: Any, target: Any) -> Any:
    raise ZeroDivisionError("a mistake of the user's")


_lock = threading.Lock()
_alive = _most = 0


def counted(value: Any) -> Any:
    """Return ``value``, and count it until it is garbage."""
    global _alive, _most
    with _lock:
        _alive += 1
        _most = max(_most, _alive)
    weakref.finalize(value, _gone)
    return value


def _gone() -> None:
    global _alive
    _alive -= 1  # without the lock, which the thread that runs this may hold


def most_alive() -> int:
    """Return how many counted values were alive at once since the last call."""
    global _most
    with _lock:
        most, _most = _most, _alive
        return most


@dataclass(frozen=True)
class Counted(Recipe):
    """Recipe of samples x (1,), y (1,) that are numbers from ``first`` on."""

    length: int
    first: int

    def __len__(self) -> int:
        return self.length

    def part(self, start: int, stop: int) -> Counted:
        return Counted(stop - start, self.first + start)

    def load(self) -> Arrays:
        x = np.arange(self.first, self.first + self.length, dtype=np.float32)[:, None]
        return counted(Arrays({"x": x, "y": x % 3}))


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
    """Return ratings, many of some users; the last input is the number of the rating."""
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
    if "iterations" not in options:
        options.setdefault("epochs", 2)
    model = partial(Recommender, sparse)
    return fit(samples or ratings(), model, method or Adam(0.05), **options)


def digest_of_all(trainer: Trainer) -> str:
    """Return the digest of all weights and tables."""
    state = trainer.model.state_dict()
    return hashlib.sha256(b"".join(state[name].tobytes() for name in sorted(state))).hexdigest()


Made = Callable[[Any], Any]


def nothing(of: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Descent(Method):
    """Descends along the gradient; functions set the state and change weights and state."""

    first: Made = nothing  # from the number of weights to the first state
    change: Made = field(default=lambda weights: weights)
    state: Made = field(default=lambda state: state)

    def init(self, size: int) -> Any:
        return self.first(size)

    def update(
        self, weights: Any, gradient: Any, state: Any, iteration: int, scale: float = 1.0,
        overwrite: bool = False,
    ) -> Any:  # fmt: skip
        return self.change(weights - np.float32(0.1 * scale) * gradient), self.state(state)

    def rate_at(self, iteration: int, state: Any = None) -> float:
        return 0.1
