"""Layers against PyTorch's: the same weights give the same results and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daskdl import nn, ops
from daskdl.tensor import Tensor
from tests.daskdl.gradients import as_tuple, normal


def channels_second(torch: Any, x: Any) -> Any:
    """Return (N, ..., C) as (N, C, ...)."""
    return torch.movedim(x, -1, 1)


def channels_last(torch: Any, x: Any) -> Any:
    """Return (N, C, ...) as (N, ..., C)."""
    return torch.movedim(x, 1, -1)


def check_like_pytorch(
    torch: Any,
    ours: nn.Module | Callable[..., Any],
    theirs: Any,
    *shapes: Sequence[int] | np.ndarray,
    channels: bool = True,
    names: dict[str, str] | None = None,
    tolerance: float = 1e-5,
) -> None:
    """Compare result and gradients in float32.

    Parameters
    ----------
    ours, theirs
        The layer or operation, and PyTorch's module or function. Its parameters of the same names,
        or as ``names`` maps ours to theirs, get our values. Weights of a convolution, with channels
        last here and second there, are transposed, and so are their gradients.
    *shapes
        Shapes of our inputs; or an array in place of a shape.
    channels
        Whether inputs and results have their channels last here and second there.
    """
    weights = dict(theirs.named_parameters()) if hasattr(theirs, "named_parameters") else {}
    pairs = []
    for name, parameter in ours.named_parameters() if isinstance(ours, nn.Module) else ():
        other = weights[(names or {}).get(name, name)]
        parameter.data[...] = normal(*parameter.shape, seed=len(pairs)) / 2
        value = torch.tensor(parameter.data)
        turned = channels and value.ndim > 2
        with torch.no_grad():
            other.copy_((channels_second(torch, value) if turned else value).reshape(other.shape))
        pairs.append((parameter, other, turned))
    arrays = [
        shape if isinstance(shape, np.ndarray) else normal(*shape, seed=i).astype("f4")
        for i, shape in enumerate(shapes)
    ]
    mine = [Tensor(x, requires_grad=x.dtype == np.float32) for x in arrays]
    other_inputs = [torch.tensor(x, requires_grad=x.dtype == np.float32) for x in arrays]
    fed = [channels_second(torch, x) if channels else x for x in other_inputs]
    results, expected = as_tuple(ours(*mine)), theirs(*fed)
    expected = expected if isinstance(expected, tuple) else (expected,)
    turn_back = channels and expected[0].ndim > 2
    expected = [channels_last(torch, y) if turn_back else y for y in expected]
    assert len(results) == len(expected)
    total, loss = None, 0
    for i, (result, right) in enumerate(zip(results, expected, strict=True)):
        close(result.data, right, tolerance)
        dy = normal(*result.shape, seed=90 + i).astype("f4")
        term = ops.sum(result * dy)
        total = term if total is None else total + term
        loss = loss + (right * torch.tensor(dy)).sum()
    if isinstance(ours, nn.Module):
        ours.zero_grad()
    if not loss.requires_grad:
        return
    total.backward()
    loss.backward()
    for tensor, other in zip(mine, other_inputs, strict=True):
        if other.requires_grad:
            close(tensor.grad, other.grad, tolerance)
    for parameter, other, turned in pairs:
        gradient = channels_last(torch, other.grad) if turned else other.grad
        close(parameter.grad, gradient.reshape(parameter.shape), tolerance)


def check_agreement(
    torch: Any, ours: Callable[..., Any], theirs: Callable[..., Any], *arrays: np.ndarray
) -> None:
    """Compare two functions of the same arrays, and their gradients, in float32."""
    check_like_pytorch(torch, ours, theirs, *(a.astype("f4") for a in arrays), channels=False)


def close(actual: np.ndarray, expected: Any, tolerance: float) -> None:
    """Assert that arrays agree, with a tolerance relative to the largest expected number."""
    right = expected.detach().numpy()
    assert actual.shape == right.shape
    assert actual.dtype == right.dtype
    scale = max(0.1, np.abs(right).max(initial=0))
    np.testing.assert_allclose(actual, right, rtol=0, atol=tolerance * scale)
