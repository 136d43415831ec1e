"""Agreement of an operation with PyTorch's in float32, result and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.tensor import Tensor


def check_agreement(
    torch: Any,
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *arrays: np.ndarray | None,
    tolerance: float = 1e-5,
) -> None:
    """Compare two functions of the same float32 arrays, and their gradients.

    Images (N, H, W, C), which is what a first array of four axes is taken for, are given to
    PyTorch with their channels second and taken back.
    """
    singles = [None if a is None else a.astype("f4") for a in arrays]
    tensors = [None if a is None else torch.tensor(a, requires_grad=True) for a in singles]
    images = singles[0].ndim == 4
    first = tensors[0].permute(0, 3, 1, 2) if images else tensors[0]
    expected = theirs(first, *tensors[1:])
    expected = expected.permute(0, 2, 3, 1) if expected.ndim == 4 else expected
    dy = np.random.default_rng(7).normal(size=tuple(expected.shape)).astype("f4")
    expected.backward(torch.tensor(dy))

    inputs = [None if a is None else Tensor(a, requires_grad=True) for a in singles]
    result = ours(*inputs)
    result.backward(dy)
    pairs = [(result.data, expected.detach())]
    pairs += [(i.grad, t.grad) for i, t in zip(inputs, tensors, strict=True) if i is not None]
    for found, right in pairs:
        right = right.numpy()
        assert found.shape == right.shape
        assert found.dtype == np.float32
        scale = np.abs(right[np.isfinite(right)]).max(initial=0.1)
        np.testing.assert_allclose(found, right, rtol=0, atol=tolerance * scale)
