"""``python -m ci.bench.overhead``: cost of Python around little arithmetic, against PyTorch.

A network of three small layers and a batch of 32 samples, whose arithmetic takes less time than the
calls that lead to it. A step is forward, loss, backward and update. Peers are PyTorch's fused and
plain optimizers; the faster counts. A fit races against a loop of the same steps in the same
precision, by CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import Any

import numpy as np

from ci.bench.timing import Case, options_of, raced
from daskdl import nn, optim
from daskdl.data import SampleSet
from daskdl.models import LeNet5, ResNet
from daskdl.optim import Layout
from daskdl.train import Trainer

Step = Callable[[], float]

SAMPLES, WIDTHS = 32, (64, 64, 64, 10)

#: Our method, and the name and settings of PyTorch's.
METHODS: tuple[tuple[optim.Method, str, dict[str, float]], ...] = (
    (optim.Adam(1e-3), "Adam", {"lr": 1e-3}),
    (optim.SGD(0.01), "SGD", {"lr": 0.01}),
)


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return samples and their classes."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((SAMPLES, WIDTHS[0]), np.float32)
    return x, rng.integers(0, WIDTHS[-1], SAMPLES)


def layers(linear: Any, relu: Any) -> list[Any]:
    """Return the layers, made by the classes of one library."""
    made: list[Any] = []
    for inputs, outputs in pairwise(WIDTHS):
        made += [*([relu()] if made else []), linear(inputs, outputs)]
    return made


def ours(method: optim.Method, x: Any, y: Any) -> Step:
    """Build our network and return its step."""
    model = nn.Sequential(*layers(nn.Linear, nn.ReLU))
    loss = nn.CrossEntropyLoss()
    method, iteration = method.on(Layout.of(model)), 0
    state = method.init(model.flat.size)

    def step() -> float:
        nonlocal state, iteration
        model.zero_grad()
        value = loss(model(x), y)
        value.backward()
        weights, state = method.update(model.flat, model.flat_grad, state, iteration)
        model.load_flat(weights)
        iteration += 1
        return float(value)

    return step


def theirs(optimizer: str, settings: dict[str, Any], x: Any, y: Any) -> Step:
    """Build PyTorch's network and return its step."""
    import torch

    model = torch.nn.Sequential(*layers(torch.nn.Linear, torch.nn.ReLU))
    loss = torch.nn.CrossEntropyLoss()
    method = getattr(torch.optim, optimizer)(model.parameters(), **settings)

    def step() -> float:
        method.zero_grad()
        value = loss(model(x), y)
        value.backward()
        method.step()
        return float(value.detach())

    return step


def cases() -> Iterator[Case]:
    """Yield for each method a step."""
    import torch

    x, y = batch()
    there = torch.from_numpy(x), torch.from_numpy(y)
    for method, name, settings in METHODS:
        peers = {
            way: theirs(name, {**settings, **more}, *there)
            for way, more in (("fused", {"fused": True}), ("plain", {}))
        }
        yield Case(f"step/{name}", ours(method, x, y), peers)


#: Trainer.fit against a loop of the same steps: network, shape of a sample, classes, samples of an
#: iteration, and iterations.
FITS = {
    "LeNet-5 b32": (LeNet5, (28, 28, 1), 10, 32, 200),
    "ResNet-50 b8": (lambda: ResNet(50, 1000), (224, 224, 3), 1000, 8, 3),
}


def fits() -> Iterator[Case]:
    """Yield fits against loops."""
    for name, settings in FITS.items():
        yield _fit(name, *settings)


def _fit(name: str, make: Any, shape: tuple[int, ...], classes: int, size: int, n: int) -> Case:
    """Return a fit in this process against a loop, each in milliseconds of an iteration.

    The difference to a fit of one iteration leaves out the work that a fit does once.
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal((size * n, *shape), np.float32)
    y = rng.integers(0, classes, len(x))
    model, loss, method = make().train(), nn.CrossEntropyLoss(), optim.SGD(0.01, momentum=0.9)
    trainer, samples = Trainer(make(), loss, method), SampleSet.from_arrays(x=x, y=y)
    bound, iteration = method.on(Layout.of(model)), 0
    state = bound.init(model.flat.size)

    def loop() -> list[float]:
        nonlocal state, iteration
        order, began = rng.permutation(len(x)), time.process_time()
        for chosen in np.split(order, n):
            model.zero_grad()
            loss(model(x[chosen]), y[chosen]).backward()
            _, state = bound.update(model.flat, model.flat_grad, state, iteration, overwrite=True)
            iteration += 1
        return [1000 * (time.process_time() - began) / n]

    def seconds(iterations: int) -> float:
        began = time.process_time()
        trainer.fit(
            samples, iterations=iterations, batch_size=size, threads=1, client=False,
            progress=False,
        )  # fmt: skip
        return time.process_time() - began

    def fit() -> list[float]:
        return [1000 * (seconds(n) - seconds(1)) / (n - 1)]

    return Case(f"fit/{name}", fit, {"loop": loop}, timed=True)


def main(arguments: list[str] | None = None) -> None:
    """Race the cases and print the table."""
    options = options_of(__doc__, seconds=2.0, threads="1").parse_args(arguments)
    raced(options, lambda: chain(cases(), fits()))


if __name__ == "__main__":
    main()
