"""Attention of several heads, forward alone and with its gradients, float32 and bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl import ops
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
