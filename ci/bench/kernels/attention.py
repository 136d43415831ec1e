"""Attention of several heads, and products in bfloat16 and float32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl import ops
from daskdl.kernels.products import bfloat16
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime.precision import PRECISIONS, computing_in
from daskdl.tensor import Tensor

#: Samples, heads, steps and channels of a head.
SHAPES = ((16, 4, 128, 64), (4, 4, 512, 64))


def cases() -> Iterator[Case]:
    """Yield attention in each precision; both sides read (N, T, heads, channels), as in layers."""
    rng = np.random.default_rng(0)
    for n, heads, t, c in SHAPES:
        arrays = [x.transpose(0, 2, 1, 3) for x in rng.standard_normal((4, n, t, heads, c), "f4")]
        for precision, (back, part) in product(PRECISIONS, PASSES.items()):
            yield Case(
                f"attention/{n}x{heads} T{t} C{c}/{precision}, {part}",
                partial(_ours, arrays, back, precision),
                {precision: partial(_theirs, arrays, back, precision)},
            )


PASSES = {False: "forward", True: "with gradients"}


def _ours(arrays: list[Any], back: bool, precision: str) -> None:
    inputs = [Tensor(x, requires_grad=back) for x in arrays[:3]]
    with computing_in(precision):
        y = ops.attention(*inputs)
    if back:
        y.backward(arrays[3])


def _theirs(arrays: list[Any], back: bool, precision: str) -> None:
    import torch

    kind = {"float32": torch.float32, "bf16": torch.bfloat16}[precision]
    q, k, v, dy = (torch.from_numpy(x).to(kind) for x in arrays)
    inputs = (x.requires_grad_(back) for x in (q, k, v))
    y = torch.nn.functional.scaled_dot_product_attention(*inputs)
    if back:
        y.backward(dy)


#: Rows, summands and columns in layers of ResNet-50, a transformer and the text classifier.
SHAPES_BFLOAT16 = (
    (1024, 1024, 1024),
    (6272, 256, 64),
    (1568, 1024, 256),
    (392, 2048, 512),
    (4096, 512, 2048),
    (2560, 200, 512),
)


def cases_bfloat16() -> Iterator[Case]:
    """Yield products of rounded numbers, products with their rounding, and gradients to weights."""
    for shape in SHAPES_BFLOAT16:
        yield from _products(*shape)


def _products(m: int, k: int, n: int) -> Iterator[Case]:
    import torch

    rng = np.random.default_rng(0)
    x, w, dy = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (n, k), (m, n)))
    pairs, panels = bfloat16.along(x), bfloat16.columns_of(w).copy()
    across = bfloat16.across(dy), bfloat16.across(x)
    tx, tw, tdy = (torch.from_numpy(a).bfloat16() for a in (x, w, dy))

    def rounding() -> Any:
        return bfloat16.product(bfloat16.along(x), bfloat16.columns_of(w), n)

    def their_rounding() -> Any:
        return (torch.from_numpy(x).bfloat16() @ torch.from_numpy(w).bfloat16().T).float()

    peers = {"bfloat16": lambda: tx @ tw.T, "our float32": lambda: matmul(x, w.T)}
    name = f"bfloat16/{m}x{k}x{n}"
    yield Case(f"{name}/product", lambda: bfloat16.product(pairs, panels, n), peers)
    yield Case(f"{name}/rounding and product", rounding, {"bfloat16": their_rounding})
    weights = partial(bfloat16.outer_product, *across)
    yield Case(f"{name}/weights", weights, {"bfloat16": lambda: tdy.T @ tx})
