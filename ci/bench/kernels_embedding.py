"""Embedding: 2048 rows of a table of 138 k x 64, their gradient, and steps on these rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl.kernels.vectors.embedding import dense_gradient, gather, row_gradient
from daskdl.optim import SGD, Adagrad, Adam, Method
from daskdl.rows import Rows

N, C, BATCH = 138_000, 64, 2048


def cases() -> Iterator[Case]:
    """Yield forward, backward (the rows, the whole table) and each method's step."""
    import torch

    rng = np.random.default_rng(0)
    table = rng.standard_normal((N, C), np.float32)
    ids = np.minimum(rng.zipf(1.1, BATCH), N) - 1  # as often as words and users are
    dy = rng.standard_normal((BATCH, C), np.float32)
    there, theirs, up = torch.from_numpy(ids), torch.from_numpy(table.copy()), torch.from_numpy(dy)
    size = f"{BATCH} of {N // 1000}k x {C}"
    aten = torch.ops.aten
    yield Case(
        f"embedding/gather {size}",
        lambda: gather(table, ids),
        {"embedding": lambda: aten.embedding(theirs, there)},
    )
    yield Case(
        f"embedding/gradient as rows {size}",
        lambda: row_gradient(ids, dy, N),
        {"sparse, coalesced": lambda: torch.sparse_coo_tensor(
            there[None], up, (N, C), check_invariants=False).coalesce()},
    )  # fmt: skip
    yield Case(
        f"embedding/gradient of the table {size}",
        lambda: dense_gradient(ids, dy, N),
        {"dense": lambda: aten.embedding_dense_backward(up, there, N, -1, False)},
    )

    methods = {"SGD": SGD(0.01), "Adagrad": Adagrad(0.01), "SparseAdam": Adam(0.01)}
    for name, method in methods.items():
        parameter = torch.nn.Parameter(theirs.clone())
        optimizer = getattr(torch.optim, name)([parameter], lr=0.01)
        yield Case(
            f"embedding/gradient and step {name} {size}",
            _ours(method, table.copy(), ids, dy),
            {"sparse": _peer(optimizer, parameter, there, up)},
        )


def _ours(method: Method, table: Any, ids: Any, dy: Any) -> Callable[[], None]:
    held = {name: slot.reshape(N, C) for name, slot in method.init_rows(N * C).items()}
    return lambda: method.update_rows("table", table, Rows.of(ids, dy, N), held, 5)


def _peer(optimizer: Any, parameter: Any, ids: Any, dy: Any) -> Any:
    import torch

    def run() -> None:
        parameter.grad = torch.sparse_coo_tensor(ids[None], dy, (N, C), check_invariants=False)
        optimizer.step()

    return run
