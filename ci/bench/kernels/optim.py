"""Optim methods over 25 M floats and over rows of tables, against PyTorch's and copies of bytes.

Ours writes new weights and state and keeps the old ones; PyTorch's changes them in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl.kernels.runtime.threads import threads
from daskdl.kernels.vectors.embedding import gather, row_gradient
from daskdl.optim import SGD, Adagrad, Adam, AdamW, Method, RMSprop
from daskdl.rows import Rows

SIZE = 25_000_000

#: Method, PyTorch's name for it and its settings there, arrays read and written.
METHODS: dict[str, tuple[Method, str, dict[str, Any], int]] = {
    "SGD": (SGD(0.01), "SGD", {"lr": 0.01}, 3),
    "SGD momentum": (SGD(0.01, 0.9), "SGD", {"lr": 0.01, "momentum": 0.9}, 5),
    "SGD nesterov decay": (
        SGD(0.01, 0.9, True, 1e-4),
        "SGD",
        {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4},
        5,
    ),
    "Adam": (Adam(), "Adam", {}, 7),
    "AdamW": (AdamW(), "AdamW", {}, 7),
    "Adagrad": (Adagrad(), "Adagrad", {}, 5),
    "RMSprop": (RMSprop(), "RMSprop", {}, 5),
}


def cases() -> Iterator[Case]:
    """Yield for each method the races with PyTorch and with the copy."""
    import torch

    rng = np.random.default_rng(0)
    weights, gradient = rng.random((2, SIZE), np.float32)
    source, sink = rng.random((2, 7 * SIZE // 2), np.float32)
    pool = ThreadPoolExecutor()
    for name, (method, theirs, settings, arrays) in METHODS.items():
        parameter = torch.nn.Parameter(torch.from_numpy(weights.copy()))
        parameter.grad = torch.from_numpy(gradient.copy())
        kind = getattr(torch.optim, theirs)
        fused = {"fused": True} if "fused" in signature(kind).parameters else {}
        peer = kind([parameter], **fused, **settings)
        ours = _updates(method, weights, gradient)
        how = "fused, in place" if fused else "in place"
        yield Case(f"optim/{name} 25M", ours, {how: peer.step})

        def copy(n: int = arrays * SIZE // 2) -> None:
            bounds = pairwise(n * i // threads() for i in range(threads() + 1))
            jobs = [pool.submit(np.copyto, sink[i:j], source[i:j]) for i, j in bounds]
            for job in jobs:
                job.result()

        yield Case(f"optim beside a copy/{name} 25M", ours, {"copy of the same bytes": copy})


def _updates(method: Method, weights: Any, gradient: Any) -> Callable[[], None]:
    """Return a function that makes the next update, as training does."""
    iteration, state = 0, method.init(weights.size)
    state = {name: array + 0 for name, array in state.items()}  # real memory

    def update() -> None:
        nonlocal weights, state, iteration
        weights, state = method.update(weights, gradient, state, iteration)
        iteration += 1

    return update


N, C, BATCH = 138_000, 64, 2048


def cases_embedding() -> Iterator[Case]:
    """Yield forward, backward (gradient as rows and as a table), and a step of each method."""
    import torch

    rng = np.random.default_rng(0)
    table = rng.standard_normal((N, C), np.float32)
    ids = np.minimum(rng.zipf(1.1, BATCH), N) - 1  # frequencies like those of words
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
        lambda: _dense(ids, dy),
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


def _dense(ids: Any, dy: Any) -> Any:
    which, rows = row_gradient(ids, dy, N)
    dense = np.zeros((N, C), dy.dtype)
    dense[which] = rows
    return dense


def _ours(method: Method, table: Any, ids: Any, dy: Any) -> Callable[[], None]:
    slots = {name: slot.reshape(N, C) for name, slot in method.init_rows(N * C).items()}
    return lambda: method.update_rows("table", table, Rows.of(ids, dy, N), slots, 5)


def _peer(optimizer: Any, parameter: Any, ids: Any, dy: Any) -> Any:
    import torch

    def run() -> None:
        parameter.grad = torch.sparse_coo_tensor(ids[None], dy, (N, C), check_invariants=False)
        optimizer.step()

    return run
