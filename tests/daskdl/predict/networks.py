"""Small networks that change in training, and their samples."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from daskdl.nn import BatchNorm, Dropout, Linear, Module, ReLU, Sequential
from daskdl.tensor import no_grad

N = 53


def network(outputs: int = 2) -> Module:
    """Return a network in training, with running statistics and a layer that draws."""
    model = Sequential(
        Linear(3, 8, seed=1), BatchNorm(8), ReLU(), Dropout(0.5), Linear(8, outputs, seed=2)
    )
    model(inputs())  # changes the running statistics
    return model


def inputs(n: int = N) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)


def by_hand(model: Module, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the model's results in inference; it is left in training."""
    with no_grad():
        result = model.eval()(x.astype(np.float32)).data
    model.train()
    return result


@cache
def small() -> Module:
    """Return the network that tests share; it is made at the first call."""
    return network()


@cache
def expected() -> np.ndarray[Any, Any]:
    """Return the results of :func:`small` in inference for :func:`inputs`."""
    return by_hand(small(), inputs())


def same(result: Any, wanted: Any = None) -> None:
    """Check that results are those wanted, or the :func:`expected` ones."""
    wanted = expected() if wanted is None else wanted
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
