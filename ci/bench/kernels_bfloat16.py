"""Matrix products in bfloat16 beside PyTorch's, and beside our own in float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ci.bench.timing import Case
from daskdl.kernels.products import bfloat16
from daskdl.kernels.products.matmul import matmul

#: Rows, summands and columns: of layers of ResNet-50, a transformer and the text classifier.
SHAPES = (
    (1024, 1024, 1024),
    (6272, 256, 64),
    (1568, 1024, 256),
    (392, 2048, 512),
    (4096, 512, 2048),
    (2560, 200, 512),
)


def cases() -> Iterator[Case]:
    """Yield products of rounded numbers, rounding with the product, and gradients to weights."""
    import torch

    rng = np.random.default_rng(0)
    for m, k, n in SHAPES:
        x, w, dy = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (n, k), (m, n)))
        pairs, panels = bfloat16.along(x), bfloat16.columns_of(w).copy()
        tx, tw, tdy = (torch.from_numpy(a).bfloat16() for a in (x, w, dy))
        name, across = f"bfloat16/{m}x{k}x{n}", (bfloat16.across(dy), bfloat16.across(x))
        yield Case(
            f"{name}/product",
            lambda pairs=pairs, panels=panels, n=n: bfloat16.product(pairs, panels, n),
            {
                "bfloat16": lambda tx=tx, tw=tw: tx @ tw.T,
                "our float32": lambda x=x, w=w: matmul(x, w.T),
            },
        )
        yield Case(
            f"{name}/rounding and product",
            lambda x=x, w=w, n=n: bfloat16.product(bfloat16.along(x), bfloat16.columns_of(w), n),
            {
                "bfloat16": lambda x=x, w=w: (
                    torch.from_numpy(x).bfloat16() @ torch.from_numpy(w).bfloat16().T
                ).float()
            },
        )
        yield Case(
            f"{name}/weights",
            lambda across=across: bfloat16.outer_product(*across),
            {"bfloat16": lambda tx=tx, tdy=tdy: tdy.T @ tx},
        )
