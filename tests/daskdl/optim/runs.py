"""A small descent that optim methods are compared on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SIZE, STEPS = 37, 10


def start() -> np.ndarray:
    """Return the first weights, float32 (SIZE,)."""
    return np.random.default_rng(0).normal(size=SIZE).astype(np.float32)


def gradients(weights: Any, iteration: int) -> Any:
    """Return the gradient of a bowl around 1 whose steepness differs by weight and wobbles."""
    steepness = np.linspace(0.5, 2, SIZE, dtype=np.float32) + np.float32(0.2 * (iteration % 3))
    return (weights - 1) * steepness


def descend(method: Any, steps: int = STEPS) -> np.ndarray:
    """Return the weights after some steps."""
    weights = start()
    state = method.init(SIZE)
    for i in range(steps):
        weights, state = method.update(weights, gradients(weights, i), state, i)
        assert weights.dtype == np.float32
    return weights


def torch_descends(make: Callable[[list[Any]], Any], torch: Any) -> np.ndarray:
    """Return the weights after the same steps of a method of PyTorch."""
    weights = torch.tensor(start(), requires_grad=True)
    method = make([weights])
    for i in range(STEPS):
        weights.grad = torch.tensor(gradients(weights.detach().numpy(), i))
        method.step()
    return weights.detach().numpy()


def check_pure(method: Any) -> None:
    """Assert that an update changes none of its inputs, twice the same, and shares no memory."""
    weights, state = start(), method.init(SIZE)
    for i in range(3):
        gradient = gradients(weights, i)
        arrays = [weights, gradient, *state.values()]
        kept = [a.copy() for a in arrays]
        for array in arrays:
            array.flags.writeable = False  # as Dask hands them out
        results = [method.update(weights, gradient, state, i) for _ in range(2)]
        for before, after in zip(kept, arrays, strict=True):
            np.testing.assert_array_equal(before, after)
        (new, new_state), (again, again_state) = results
        np.testing.assert_array_equal(new, again)
        assert new_state.keys() == again_state.keys() == state.keys()
        for result in (new, *new_state.values()):
            assert not any(np.shares_memory(result, array) for array in arrays)
            assert result.dtype == np.float32
        weights, state = new, new_state
