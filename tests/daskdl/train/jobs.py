"""A small job and its samples, for tests of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.data.recipe import Arrays
from daskdl.nn import Linear, Module, MSELoss
from daskdl.optim import SGD
from daskdl.train.engines.job import Job, Tools, pack

N = 11


def new_job(
    loss: Callable[..., Any] | None = None, threads: int = 1, **options: Any
) -> tuple[Job, Module]:
    model = options.pop("model") if "model" in options else Linear(3, 2, seed=4)
    tools = Tools(model, loss or MSELoss(), options.pop("optimizer", SGD(0.5)), **options)
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
