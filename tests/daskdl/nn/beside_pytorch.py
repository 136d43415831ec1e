"""A layer beside PyTorch's: the same weights, then the same results and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from daskdl import nn
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
        The layer or operation, and PyTorch's module or function; parameters of the same names (or
        of ``names``, ours -> theirs) are given our values. Those of a convolution, whose channels
        lie last here and second there, are turned round, and so are their gradients.
    *shapes
        Of the inputs, ours; or an array itself.
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
        term = sum_of(result * dy)
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


def close(found: np.ndarray, expected: Any, tolerance: float) -> None:
    """Assert that two arrays agree, against the largest number of the second."""
    right = expected.detach().numpy()
    assert found.shape == right.shape
    assert found.dtype == right.dtype
    scale = max(0.1, np.abs(right).max(initial=0))
    np.testing.assert_allclose(found, right, rtol=0, atol=tolerance * scale)


def sum_of(tensor: Tensor) -> Tensor:
    """Sum all elements."""
    from daskdl import ops

    return ops.sum(tensor)
