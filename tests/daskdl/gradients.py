"""Checks that operations and layers share: gradients, memory layouts, and bits of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.tensor import Tensor, no_grad


def check_gradient(
    function: Callable[..., Any], *arrays: np.ndarray | None, tolerance: float = 1e-6, seed: int = 0
) -> None:
    """Compare the tape's gradient of ``function`` with a central difference, in float64.

    All results are weighted by random numbers and summed; both ways have to agree on
    the slope of that sum along one random direction of all inputs.
    """
    rng = np.random.default_rng(seed)
    tensors = [None if a is None else Tensor(np.array(a), requires_grad=True) for a in arrays]
    results = as_tuple(function(*tensors))
    weights = [rng.normal(size=result.shape) for result in results]
    directions = [None if a is None else rng.normal(size=a.shape) for a in arrays]
    assert all(result.dtype == np.float64 for result in results)

    total = None
    for result, weight in zip(results, weights, strict=True):
        term = sum_of(result * weight)
        total = term if total is None else total + term
    total.backward()
    products = [
        tensor.grad * direction
        for tensor, direction in zip(tensors, directions, strict=True)
        if tensor is not None
    ]
    analytic = sum(product.sum() for product in products)
    scale = sum(np.abs(product).sum() for product in products) + np.abs(total.data) + 1e-3

    def value(step: float) -> float:
        with no_grad():
            moved = [
                None if a is None else Tensor(a + step * d)
                for a, d in zip(arrays, directions, strict=True)
            ]
            outputs = as_tuple(function(*moved))
        return sum((o.data * w).sum() for o, w in zip(outputs, weights, strict=True))

    numeric = (value(1e-6) - value(-1e-6)) / 2e-6
    assert abs(numeric - analytic) <= tolerance * scale, (numeric, analytic, scale)


def as_tuple(result: Any) -> tuple[Tensor, ...]:
    """Return all tensors of a result, however deep its tuples."""
    if isinstance(result, Tensor):
        return (result,)
    return tuple(tensor for part in result for tensor in as_tuple(part))


def sum_of(tensor: Tensor) -> Tensor:
    """Sum all elements."""
    from daskdl import ops

    return ops.mean(tensor) * float(tensor.data.size)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normal numbers in float64."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def layouts(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield x read-only, in Fortran's order, as a view with gaps, backwards, and unaligned."""
    read_only = x.copy()
    read_only.flags.writeable = False
    yield read_only
    yield np.asfortranarray(x)
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield x[::-1].copy()[::-1]
    yield np.frombuffer(b"-" + x.tobytes(), x.dtype, offset=1).reshape(x.shape)


def same_bits(function: Callable[[], Any], *budgets: int) -> Any:
    """Check that a function's array or arrays have the same bits with each budget; return them."""
    results = []
    for n in budgets or (1, 2):
        with thread_budget(n):
            results.append(function())
    for other in results[1:]:
        pairs = (
            [(results[0], other)]
            if isinstance(other, np.ndarray)
            else zip(results[0], other, strict=True)
        )
        for one, two in pairs:
            np.testing.assert_array_equal(one, two)
    return results[0]
