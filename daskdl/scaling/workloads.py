"""Workloads: networks of the zoo, how each is trained, and samples that look like its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.models import ConvLSTMForecaster, InceptionV1, LeNet5, NeuMF, ResNet, TextClassifier
from daskdl.nn import BCEWithLogitsLoss, CrossEntropyLoss, Module, MSELoss, NLLLoss
from daskdl.optim import SGD, Adagrad, Adam, Method

#: From a generator and a number of samples to x and y.
Draw = Callable[[np.random.Generator, int], tuple[NDArray[Any], NDArray[Any]]]

#: MovieLens-20M's, and the words of a news corpus.
USERS, ITEMS, WORDS = 138_493, 26_744, 20_000


@dataclass(frozen=True)
class Workload:
    """A network and how it is trained.

    Parameters
    ----------
    name : str
    batch : int
        Samples of an iteration that a worker takes.
    build : callable
        Returns (model, loss, method).
    draw : callable
        Given a Generator and n, returns x (n, ...) and y (n, ...). It pickles.
    """

    name: str
    batch: int
    build: Callable[[], tuple[Module, Callable[..., Any], Method]]
    draw: Draw


def pictures(
    size: int, channels: int, classes: int, rng: np.random.Generator, n: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return x (n, size, size, channels) of normal noise, and classes y (n,)."""
    x = rng.standard_normal((n, size, size, channels), np.float32)
    return x, rng.integers(0, classes, n)


def sequences(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return ten images x (n, 10, 64, 64, 1) and the ten that follow."""
    x, y = rng.random((2, n, 10, 64, 64, 1), np.float32)
    return x, y


def pairs(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return users and items x (n, 2), and whether the one took to the other, y (n,)."""
    # Items are taken to as people take to films: a few often, most hardly ever.
    items = np.minimum(rng.zipf(1.2, n) - 1, ITEMS - 1)
    x = np.stack([rng.integers(0, USERS, n), items], 1)
    return x, rng.integers(0, 2, n).astype(np.float32)


def texts(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ids of 200 words x (n, 200), and classes y (n,)."""
    return rng.integers(1, WORDS, (n, 200)), rng.integers(0, 20, n)


def _resnet(depth: int) -> tuple[Module, Any, Method]:
    return ResNet(depth), CrossEntropyLoss(), _descent()


def _inception() -> tuple[Module, Any, Method]:
    return InceptionV1(), CrossEntropyLoss(), _descent()


def _lenet() -> tuple[Module, Any, Method]:
    return LeNet5(), CrossEntropyLoss(), _descent()


def neumf(sparse: bool = True) -> tuple[Module, Any, Method]:
    """Return NeuMF, whose tables are trained by rows or as a whole, its loss and its method."""
    return NeuMF(USERS, ITEMS, sparse=sparse), BCEWithLogitsLoss(), Adam(1e-3)


def _text() -> tuple[Module, Any, Method]:
    model = TextClassifier(WORDS, 20, 200, channels=128, hidden=128)
    return model, NLLLoss(), Adagrad(0.01)


def _convlstm() -> tuple[Module, Any, Method]:
    return ConvLSTMForecaster(10, 10, (64, 64)), MSELoss(), Adam(1e-3)


def _descent() -> Method:
    return SGD(0.01, momentum=0.9, weight_decay=1e-4)


_LARGE = partial(pictures, 224, 3, 1000)

#: By name, from the quickest to the largest.
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("lenet", 64, _lenet, partial(pictures, 28, 1, 10)),
        Workload("ncf", 2048, neumf, pairs),
        Workload("text", 128, _text, texts),
        Workload("convlstm", 4, _convlstm, sequences),
        Workload("inception", 16, _inception, _LARGE),
        *(Workload(f"resnet{n}", 8, partial(_resnet, n), _LARGE) for n in (18, 34, 50, 101, 152)),
    )
}


def workload(name: str) -> Workload:
    """Return one of :data:`WORKLOADS`.

    Raises
    ------
    SettingsError
        When there is none of this name.
    """
    if name not in WORKLOADS:
        raise SettingsError(
            f"model: expected one of {', '.join(WORKLOADS)}, found {name!r}; name one of these"
        )
    return WORKLOADS[name]
