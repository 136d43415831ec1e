"""``python -m ci.bench.overhead``: what Python costs around little arithmetic, beside PyTorch.

A network of three small layers and a batch of 32 samples, whose arithmetic takes less time than the
calls that lead to it. To build is to make network, loss, optim method and its state; PyTorch makes
that in the first step, and it counts there. A step is forward, loss, backward and update. Peers
update by their fused optimizer and by their plain one, the faster counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ci.bench.timing import Case, options_of, raced
from daskdl import nn, optim
from daskdl.optim import Layout

Step = Callable[[], float]

SAMPLES, WIDTHS = 32, (64, 64, 64, 10)

#: Ours, PyTorch's, and its settings.
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
    """Return the layers, made by one side's classes."""
    made: list[Any] = []
    for inputs, outputs in pairwise(WIDTHS):
        made += [*([relu()] if made else []), linear(inputs, outputs)]
    return made


def ours(method: optim.Method, x: Any, y: Any) -> Step:
    """Build our side and return its step."""
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
    """Build PyTorch's side and return its step."""
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
    """Yield building, building with the first step, and a step, with each method."""
    import torch

    x, y = batch()
    there = torch.from_numpy(x), torch.from_numpy(y)
    for method, name, settings in METHODS:

        def build(method: optim.Method = method) -> Step:
            return ours(method, x, y)

        peers = {
            way: lambda name=name, all_={**settings, **more}: theirs(name, all_, *there)  # type: ignore[misc]
            for way, more in (("fused", {"fused": True}), ("plain", {}))
        }
        yield Case(f"build/{name}", build, peers)
        yield Case(
            f"build and first step/{name}",
            lambda build=build: build()(),  # type: ignore[misc]
            {way: lambda peer=peer: peer()() for way, peer in peers.items()},  # type: ignore[misc]
        )
        yield Case(f"step/{name}", build(), {way: peer() for way, peer in peers.items()})


def main(arguments: list[str] | None = None) -> None:
    """Race the cases and print the table."""
    parser = options_of(__doc__.splitlines()[0], seconds=2.0)
    parser.set_defaults(threads="1")
    options = parser.parse_args(arguments)
    raced(options, cases)


if __name__ == "__main__":
    main()
