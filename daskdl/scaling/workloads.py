"""Workloads: networks of the zoo or a simulated one, with loss, method and samples."""

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
from daskdl.data.batches import generator
from daskdl.data.partition import Batch, Indices, Partition
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

#: Users and items of MovieLens-20M, and the words of a news corpus.
USERS, ITEMS, WORDS = 138_493, 26_744, 20_000


@dataclass(frozen=True)
class Workload:
    """A network, and the settings of its training.

    ``batch`` is the samples of a worker in an iteration; ``build`` returns (model, loss, method).
    ``draw``, which must pickle, returns x (n, ...) and y (n, ...) for a Generator and n.
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
    """Return ten images x (n, 10, 64, 64, 1) and the next ten, y."""
    x, y = rng.random((2, n, 10, 64, 64, 1), np.float32)
    return x, y


def pairs(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return users and items x (n, 2), and whether the user chose the item, y (n,)."""
    # As with films, a few items are chosen often, and most rarely.
    items = np.minimum(rng.zipf(1.2, n) - 1, ITEMS - 1)
    x = np.stack([rng.integers(0, USERS, n), items], 1)
    return x, rng.integers(0, 2, n).astype(np.float32)


def texts(rng: np.random.Generator, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ids of 200 words x (n, 200), and classes y (n,)."""
    return rng.integers(1, WORDS, (n, 200)), rng.integers(0, 20, n)


def neumf(sparse: bool = True) -> tuple[Module, Any, Method]:
    """Return NeuMF, its loss and its method; ``sparse`` trains its tables by rows."""
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

#: Workloads by name, from the fastest to the largest.
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
    """Return the workload of a name in :data:`WORKLOADS`; a SettingsError for other names."""
    if name not in WORKLOADS:
        raise SettingsError(
            f"model: expected one of {', '.join(WORKLOADS)}, found {name!r}; name one of these"
        )
    return WORKLOADS[name]


class Repeated(Partition):
    """A partition of ``length`` samples that repeats a few, beginning with number ``first``."""

    def __init__(self, few: Arrays, first: int, length: int) -> None:
        self._few, self._first, self._length = few, first, length

    @property
    def nbytes(self) -> int:
        """Bytes of the few samples in memory."""
        return self._few.nbytes

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Indices) -> Batch:
        """Return copies of the samples at these positions."""
        return self._few.take((np.asarray(indices) + self._first) % len(self._few))


@dataclass(frozen=True)
class Synthetic(Excerpt):
    """The recipe of a :class:`Repeated` partition, which workers draw themselves.

    ``held`` samples are drawn; the partition's numbers begin with ``start``.
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
        """Return the partition with newly drawn samples."""
        return Repeated(self._drawn(self.held), self.start, len(self))

    def _drawn(self, n: int) -> Arrays:
        x, y = self.draw(generator(self.seed, "synthetic"), n)
        return Arrays({"x": x, "y": y})


def synthetic(draw: Draw, lengths: Sequence[int], held: int) -> SampleSet:
    """Return samples with a partition of each length; each repeats ``held`` samples."""
    return SampleSet([Synthetic(draw, i, held, 0, length) for i, length in enumerate(lengths)])


#: Share of the time for the forward pass; networks compute about twice as much backward.
FORWARD = 1 / 3

#: Numbers in a sample.
FEATURES = 4

#: Number of layers that share weights and time, so that gradients are ready one by one.
LAYERS = 32


@op
def waited(x: Any, weight: Any, *, seconds: float) -> Any:
    """Multiply x (N, F) by the first F of a long vector of weights, and wait ``seconds``."""
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
    """A layer of ``size`` weights, at least a sample's numbers, that waits for each sample."""

    def __init__(self, size: int, seconds: float) -> None:
        self.weight, self._seconds = Parameter(np.zeros(size, np.float32)), seconds

    def forward(self, x: Any) -> Any:
        """Return x (N, F) times the first F weights, after the wait."""
        return waited(x, self.weight, seconds=self._seconds * len(x))


class Waiting(Module):
    """A model of ``size`` weights in equal layers, whose step takes a known time.

    There are at least as many weights as numbers in a sample. ``seconds`` is the time of a step per
    sample, a third of it forward; all layers share it equally.
    """

    def __init__(self, size: int, seconds: float = 0.0) -> None:
        count = max(1, min(LAYERS, size // FEATURES))
        ends = [size * k // count for k in range(count + 1)]
        self.layers = [WaitingLayer(b - a, seconds / count) for a, b in pairwise(ends)]

    def forward(self, x: Any) -> Any:
        """Return x (N, F) times the first F weights of all layers, after the waits."""
        for layer in self.layers:
            x = layer(x)
        return x


def waiting(workload: Workload, seconds: float, size: int) -> Workload:
    """Return a workload of ``size`` weights whose batch takes ``seconds`` of waiting."""

    def build() -> tuple[Module, Any, SGD]:
        return Waiting(max(size, FEATURES), seconds / workload.batch), MSELoss(), SGD(0.01)

    return Workload(workload.name, workload.batch, build, ones)


def ones(rng: np.random.Generator, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return x and y (n, 4) of ones."""
    x = np.ones((n, FEATURES), np.float32)
    return x, x


def _wait(end: float) -> None:
    time.sleep(max(0.0, end - time.perf_counter()))
