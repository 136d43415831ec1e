"""Waiting: a model of any size that waits in place of computing."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.vectors.arithmetic import clear
from daskdl.nn import Module, MSELoss, Parameter
from daskdl.optim import SGD
from daskdl.scaling.workloads import Workload
from daskdl.tensor import op

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

    Parameters
    ----------
    size : int
        Numbers of the weights, at least as many as a sample has.
    seconds : float
        Of a step, a third of it forward, for each sample.
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
