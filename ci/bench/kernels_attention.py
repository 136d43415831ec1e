"""Attention of several heads, and products in bfloat16 beside float32."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Yield all of them; both read (N, T, heads, channels), as layers hand it over."""
    import torch

    attend = torch.nn.functional.scaled_dot_product_attention
    kinds = {"float32": torch.float32, "bf16": torch.bfloat16}
    rng = np.random.default_rng(0)
    for n, heads, t, c in SHAPES:
        arrays = [x.transpose(0, 2, 1, 3) for x in rng.standard_normal((4, n, t, heads, c), "f4")]

        def ours(back: bool, precision: str, arrays: Any = arrays) -> None:
            inputs = [Tensor(x, requires_grad=back) for x in arrays[:3]]
            with computing_in(precision):
                y = ops.attention(*inputs)
            if back:
                y.backward(arrays[3])

        def theirs(back: bool, kind: Any, arrays: Any = arrays) -> None:
            q, k, v, dy = (torch.from_numpy(x).to(kind) for x in arrays)
            y = attend(*(x.requires_grad_(back) for x in (q, k, v)))
            if back:
                y.backward(dy)

        for precision in PRECISIONS:
            for back in (False, True):
                part = "with gradients" if back else "forward"
                yield Case(
                    f"attention/{n}x{heads} T{t} C{c}/{precision}, {part}",
                    lambda ours=ours, back=back, precision=precision: ours(back, precision),
                    {
                        name: lambda theirs=theirs, back=back, kind=kind: theirs(back, kind)
                        for name, kind in kinds.items()
                        if name == precision
                    },
                )


#: Rows, summands and columns: of layers of ResNet-50, a transformer and the text classifier.
SHAPES_BFLOAT16 = (
    (1024, 1024, 1024),
    (6272, 256, 64),
    (1568, 1024, 256),
    (392, 2048, 512),
    (4096, 512, 2048),
    (2560, 200, 512),
)


def cases_bfloat16() -> Iterator[Case]:
    """Yield products of rounded numbers, rounding with the product, and gradients to weights."""
    import torch

    rng = np.random.default_rng(0)
    for m, k, n in SHAPES_BFLOAT16:
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
