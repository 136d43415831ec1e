"""``python -m ci.bench.embedding_step``: a step of large embedding tables beside PyTorch's.

The shapes are those of neural collaborative filtering on MovieLens 20M (X. He et al., WWW 2017):
138,493 users and 26,744 items, a table of each for both branches, batches of 2048. A step is
forward, backward and Adam. By rows that is PyTorch's ``sparse=True`` with SparseAdam for the tables
and Adam for the rest; beside it there is what whole tables cost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ci.bench.timing import Case, options_of, raced
from daskdl import ops
from daskdl.nn import BCEWithLogitsLoss, Embedding, Linear, Module, ReLU, Sequential
from daskdl.optim import Adam
from daskdl.tensor import Tensor

USERS, ITEMS, BATCH = 138_493, 26_744, 2048
SIZES = (USERS, ITEMS, USERS, ITEMS)
Work = Callable[[], None]


class NCF(Module):
    """Products of rows of two tables, and a layer over rows of two others."""

    def __init__(self, width: int, sparse: bool) -> None:
        self.rows = [Embedding(n, width, seed=i, sparse=sparse) for i, n in enumerate(SIZES)]
        self.layers = Sequential(Linear(2 * width, width, seed=4), ReLU())
        self.last = Linear(2 * width, 1, seed=5)

    def forward(self, pairs: Any) -> Tensor:
        """Map users and items, (N, 2), to logits (N, 1)."""
        a, b, c, d = (table(pairs[:, i % 2]) for i, table in enumerate(self.rows))
        both = ops.concatenate(a * b, self.layers(ops.concatenate(c, d, axis=1)), axis=1)
        y: Tensor = self.last(both)
        return y


def batches() -> list[tuple[Any, Any]]:
    """Return users and items, some of which come often, and whether they liked it."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(64):
        pairs = np.stack([rng.integers(0, USERS, BATCH), rng.zipf(1.2, BATCH) % ITEMS], axis=1)
        found.append((pairs, rng.integers(0, 2, (BATCH, 1)).astype(np.float32)))
    return found


def ours(width: int, sparse: bool) -> Work:
    """Return a step of ours, as a loop of one's own has it."""
    model, loss, method = NCF(width, sparse), BCEWithLogitsLoss(), Adam(1e-3)
    state = method.init(model.flat.size)
    states = {}
    for name, table in model.tables.items():
        slots = method.init_rows(table.data.size)
        states[name] = {slot: vector.reshape(table.shape) for slot, vector in slots.items()}
    source, counter = itertools.cycle(batches()), itertools.count()

    def step() -> None:
        nonlocal state
        x, y = next(source)
        t = next(counter)
        model.zero_grad()
        loss(model(x), y).backward()
        weights, state = method.update(model.flat, model.flat_grad, state, t)
        model.load_flat(weights)
        for name, table in model.tables.items():
            method.update_rows(name, table.data, table.grad, states[name], t)

    return step


def theirs(width: int, sparse: bool) -> Work:
    """Return a step of PyTorch's."""
    import torch
    from torch import nn

    tables = nn.ModuleList(nn.Embedding(n, width, sparse=sparse) for n in SIZES)
    layers = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())
    last, loss = nn.Linear(2 * width, 1), nn.BCEWithLogitsLoss()
    rest = [*layers.parameters(), *last.parameters()]
    if sparse:
        optimizers = [
            torch.optim.SparseAdam(list(tables.parameters())),
            torch.optim.Adam(rest, fused=True),
        ]
    else:
        optimizers = [torch.optim.Adam([*tables.parameters(), *rest], fused=True)]
    source = itertools.cycle([tuple(map(torch.from_numpy, batch)) for batch in batches()])

    def step() -> None:
        x, y = next(source)
        for optimizer in optimizers:
            optimizer.zero_grad()
        a, b, c, d = (table(x[:, i % 2]) for i, table in enumerate(tables))
        both = torch.cat([a * b, layers(torch.cat([c, d], 1))], 1)
        loss(last(both), y).backward()
        for optimizer in optimizers:
            optimizer.step()

    return step


def cases(widths: list[int]) -> Iterator[Case]:
    """Yield a step by rows, against PyTorch's better one, and one of whole tables."""
    for width in widths:
        peers = {"SparseAdam": theirs(width, True), "Adam": theirs(width, False)}
        yield Case(f"NCF step, tables x {width}/by rows", ours(width, True), peers)
        whole = {"Adam": peers["Adam"]}
        yield Case(f"NCF step, tables x {width}/whole", ours(width, False), whole)


def main() -> None:
    """Race the cases and print the table."""
    parser = options_of(__doc__, seconds=3.0)
    parser.add_argument("--width", type=int, action="append", help="64 and 128 without")
    options = parser.parse_args()
    raced(options, lambda: cases(options.width or [64, 128]))


if __name__ == "__main__":
    main()
