"""Workloads: networks of the zoo or one that waits, how each is trained, and their samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data import SampleSet
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.random import generator
from daskdl.data.recipe import Arrays, Excerpt
from daskdl.errors import SettingsError
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.vectors.arithmetic import clear
from daskdl.models import ConvLSTMForecaster, InceptionV1, LeNet5, NeuMF, ResNet, TextClassifier
from daskdl.nn import BCEWithLogitsLoss, CrossEntropyLoss, Module, MSELoss, NLLLoss, Parameter
from daskdl.optim import SGD, Adagrad, Adam, Method
from daskdl.tensor import op

#: From a generator and a number of samples to x and y.
Draw = Callable[[np.random.Generator, int], tuple[NDArray[Any], NDArray[Any]]]

#: MovieLens-20M's, and the words of a news corpus.
USERS, ITEMS, WORDS = 138_493, 26_744, 20_000


@dataclass(frozen=True)
class Workload:
    """A network and how it is trained.

    The batch is what a worker takes of an iteration; ``build`` returns (model, loss, method).
    ``draw``, which pickles, returns x (n, ...) and y (n, ...) for a Generator and n.
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


def neumf(sparse: bool = True) -> tuple[Module, Any, Method]:
    """Return NeuMF, whose tables are trained by rows or as a whole, its loss and its method."""
    return NeuMF(USERS, ITEMS, sparse=sparse), BCEWithLogitsLoss(), Adam(1e-3)


def _text() -> tuple[Module, Any, Method]:
    model = TextClassifier(WORDS, 20, 200, channels=128, hidden=128)
    return model, NLLLoss(), Adagrad(0.01)


def _convlstm() -> tuple[Module, Any, Method]:
    return ConvLSTMForecaster(10, 10, (64, 64)), MSELoss(), Adam(1e-3)


def _classifier(model: Callable[..., Module], *arguments: Any) -> tuple[Module, Any, Method]:
    method = SGD(0.01, momentum=0.9, weight_decay=1e-4)
    return model(*arguments), CrossEntropyLoss(), method


_LARGE = partial(pictures, 224, 3, 1000)

#: By name, from the quickest to the largest.
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("lenet", 64, partial(_classifier, LeNet5), partial(pictures, 28, 1, 10)),
        Workload("ncf", 2048, neumf, pairs),
        Workload("text", 128, _text, texts),
        Workload("convlstm", 4, _convlstm, sequences),
        Workload("inception", 16, partial(_classifier, InceptionV1), _LARGE),
        *(
            Workload(f"resnet{n}", 8, partial(_classifier, ResNet, n), _LARGE)
            for n in (18, 34, 50, 101, 152)
        ),
    )
}


def workload(name: str) -> Workload:
    """Return one of :data:`WORKLOADS`; raise SettingsError when there is none of this name."""
    if name not in WORKLOADS:
        raise SettingsError(
            f"model: expected one of {', '.join(WORKLOADS)}, found {name!r}; name one of these"
        )
    return WORKLOADS[name]


class Repeated(Partition):
    """A partition of ``length`` samples, a few again and again, from sample number ``first`` on."""

    def __init__(self, few: Arrays, first: int, length: int) -> None:
        self._few, self._first, self._length = few, first, length

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._few.nbytes

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Indices) -> Batch:
        """Return copies of the samples at these positions."""
        return self._few.take((np.asarray(indices) + self._first) % len(self._few))


@dataclass(frozen=True)
class Synthetic(Excerpt):
    """The recipe of a :class:`Repeated` partition: nothing of it is sent to a worker.

    So many samples are drawn as are ``held``; those of the partition are numbered from ``start``.
    """

    draw: Draw
    seed: int
    held: int
    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """Bytes that the loaded partition will hold."""
        return self.held * self._drawn(1).nbytes

    def load(self) -> Repeated:
        """Draw."""
        return Repeated(self._drawn(self.held), self.start, len(self))

    def _drawn(self, n: int) -> Arrays:
        x, y = self.draw(generator(self.seed, "synthetic"), n)
        return Arrays({"x": x, "y": y})


def synthetic(draw: Draw, lengths: Sequence[int], held: int) -> SampleSet:
    """Return samples with a partition of each of these lengths, each made of ``held``."""
    return SampleSet([Synthetic(draw, i, held, 0, length) for i, length in enumerate(lengths)])


#: Part of the time that is forward; networks compute about twice as much backward.
FORWARD = 1 / 3

#: Numbers of a sample.
FEATURES = 4

#: Layers among which weights and time are shared out, so that gradients are ready one by one.
LAYERS = 32


@op
def waited(x: Any, weight: Any, *, seconds: float) -> Any:
    """Multiply x (N, F) by the first F of a long vector of weights, and take so long for it."""
    few = x.shape[1]

    def backward(dy: Any) -> Any:
        began = time.perf_counter()
        gradient = empty(weight.size, weight.dtype)
        clear(gradient)
        gradient[:few] = (dy * x).sum(0)
        _wait(began + (1 - FORWARD) * seconds)
        return dy * weight[:few], gradient

    _wait(time.perf_counter() + FORWARD * seconds)
    return x * weight[:few], backward


class WaitingLayer(Module):
    """So many weights, at least as many as a sample has, and so many seconds for each sample."""

    def __init__(self, size: int, seconds: float) -> None:
        self.weight, self._seconds = Parameter(np.zeros(size, np.float32)), seconds

    def forward(self, x: Any) -> Any:
        """Return x (N, F) times the first F weights, later."""
        return waited(x, self.weight, seconds=self._seconds * len(x))


class Waiting(Module):
    """So many weights in equal layers, and a step of a known time, as long in each of them.

    There are at least as many weights as a sample has numbers. The seconds are those of a step for
    each sample, a third of it forward.
    """

    def __init__(self, size: int, seconds: float = 0.0) -> None:
        count = max(1, min(LAYERS, size // FEATURES))
        ends = [size * k // count for k in range(count + 1)]
        self.layers = [WaitingLayer(b - a, seconds / count) for a, b in pairwise(ends)]

    def forward(self, x: Any) -> Any:
        """Return x (N, F) times the first F weights of all layers, later."""
        for layer in self.layers:
            x = layer(x)
        return x


def waiting(workload: Workload, seconds: float, size: int) -> Workload:
    """Return a workload whose batch takes so long to wait for, with so many weights."""

    def build() -> tuple[Module, Any, SGD]:
        return Waiting(max(size, FEATURES), seconds / workload.batch), MSELoss(), SGD(0.01)

    return Workload(workload.name, workload.batch, build, ones)


def ones(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return x and y (n, 4) of ones."""
    x = np.ones((n, FEATURES), np.float32)
    return x, x


def _wait(end: float) -> None:
    time.sleep(max(0.0, end - time.perf_counter()))
