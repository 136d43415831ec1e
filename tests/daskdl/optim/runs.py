"""A small descent that optim methods are compared on, and what all of them are checked for."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from daskdl.optim import (
    LAMB,
    LARS,
    LBFGS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Ftrl,
    Layout,
    Method,
    Nadam,
    RMSprop,
)

SIZE, STEPS = 37, 10
LAYOUT = Layout(("first.weight", "first.bias", "last.weight"), ((4, 5), (5,), (6, 2)))
#: Every method that steps each number by itself, and those that need whole parameters or vectors.
ELEMENTWISE = [
    SGD(0.1, 0.9, dampening=0.1, weight_decay=0.1),
    Adam(amsgrad=True, weight_decay=0.1),
    AdamW(),
    Adagrad(weight_decay=0.1),
    RMSprop(centered=True, momentum=0.9, weight_decay=0.1),
    Adadelta(weight_decay=0.1),
    Adamax(weight_decay=0.1),
    Nadam(weight_decay=0.1),
    Ftrl(),
]
EVERY = [*ELEMENTWISE, LARS(0.1, weight_decay=0.1), LAMB(0.1), LBFGS(0.1, history=2)]

#: Few draws, each of a whole run; no deadline, since the first one compiles.
few = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
dtypes = st.sampled_from(["f4", "f8"])
rates = st.floats(1e-3, 0.3)
decays = st.just(0.0) | st.floats(1e-3, 0.3)
epsilons = st.floats(1e-9, 1e-2)
betas = st.floats(0.1, 0.99)


def start(size: int = SIZE) -> np.ndarray:
    """Return the first weights, float32 (size,)."""
    return np.random.default_rng(0).normal(size=size).astype(np.float32)


def gradients(weights: Any, iteration: int) -> Any:
    """Return the gradient of a bowl around 1 whose steepness differs by weight and wobbles."""
    steepness = np.linspace(0.5, 2, len(weights), dtype=weights.dtype) + 0.2 * (iteration % 3)
    return ((weights - 1) * steepness).astype(weights.dtype)


def descend(method: Any, steps: int = STEPS, dtype: Any = np.float32) -> np.ndarray:
    """Return the weights after some steps."""
    weights = start().astype(dtype)
    state = method.init(SIZE)
    for i in range(steps):
        weights, state = method.update(weights, gradients(weights, i), state, i)
        assert weights.dtype == dtype
    return weights


def torch_descends(
    make: Callable[[list[Any]], Any], torch: Any, dtype: Any = np.float32
) -> np.ndarray:
    """Return the weights after the same steps of a method of PyTorch."""
    weights = torch.tensor(start().astype(dtype), requires_grad=True)
    method = make([weights])
    for i in range(STEPS):
        weights.grad = torch.tensor(gradients(weights.detach().numpy(), i))
        method.step(*([lambda: 0.0] if isinstance(method, torch.optim.LBFGS) else []))
    return weights.detach().numpy()


def assert_close(found: np.ndarray, expected: np.ndarray, rtol: float = 1e-10) -> None:
    """Assert that weights agree as well as their dtype allows after a run, or ``rtol`` in f8."""
    if found.dtype == np.float32:
        rtol = 1e-3  # drawn settings may turn steps about, which enlarges roundings
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * max(1, np.abs(expected).max()))


def check_pure(method: Method) -> None:
    """Assert that a method pickles, and that an update is pure and can be scaled.

    It changes none of its inputs, does the same twice, and new vectors share no memory with others.
    """
    assert pickle.loads(pickle.dumps(method)) == method
    weights, state = start(), method.init(SIZE)
    for i in range(4):
        gradient = gradients(weights, i)
        arrays = [weights, gradient, *state.values()]
        kept = [a.copy() for a in arrays]
        for array in arrays:
            array.flags.writeable = False  # as Dask hands them out
        results = [method.update(weights, gradient, state, i) for _ in range(2)]
        results.append(method.update(weights, 2 * gradient, state, i, scale=0.5))
        for before, after in zip(kept, arrays, strict=True):
            np.testing.assert_array_equal(before, after)
        (new, new_state), *others = results
        for again, again_state in others:
            np.testing.assert_array_equal(new, again)
            assert new_state.keys() == again_state.keys() == state.keys()
            for name, value in new_state.items():
                np.testing.assert_array_equal(value, again_state[name])
        for name, array in {"": new, **new_state}.items():
            if array.ndim:
                assert array.shape == (SIZE,)
                kept_whole = any(array is old for old in arrays)  # as where steps are gathered
                assert kept_whole or not any(np.shares_memory(array, o) for o in arrays), name
                assert array.dtype == np.float32
        weights, state = new, new_state


cuts = st.lists(st.integers(0, 300), max_size=4)


def check_slices(method: Method, points: Sequence[int], large: bool = False) -> None:
    """Assert that slices of the vector, stepped by themselves, have the bits of the whole step."""
    size = 301 + large * (1 << 20)
    rng = np.random.default_rng(len(points))
    weights = start(size)
    state = method.init(size)
    stops = sorted({0, *(p + large * 100_003 * i for i, p in enumerate(points)), size})
    slices = [slice(a, b) for a, b in pairwise(stops)]
    owners = [slices[::2], slices[1::2]]  # of several slices each, as in a gang
    parts = [method.part(own) for own in owners]

    def join(array: np.ndarray, own: list[slice]) -> np.ndarray:
        return np.concatenate([array[s] for s in own]) if array.ndim and own else array[:0]

    for i in range(2):
        gradient = rng.normal(size=size).astype(np.float32)
        new, new_state = method.update(weights, gradient, state, i)
        for part, own in zip(parts, owners, strict=True):
            assert part is not None
            here = {n: join(a, own) if a.ndim else a for n, a in state.items()}
            found = part.update(join(weights, own), join(gradient, own), here, i)
            np.testing.assert_array_equal(found[0], join(new, own))
            for name, value in found[1].items():
                whole = new_state[name]
                np.testing.assert_array_equal(value, join(whole, own) if whole.ndim else whole)
        weights, state = new, new_state


def long_layout(size: int) -> Layout:
    """Return the layout of so many numbers, of parameters of the same names as LAYOUT's."""
    rest = size - 17 - 61
    return Layout(LAYOUT.names, ((17,), (61,), (rest, 1)))


def check_joint_slices(method: Method) -> None:
    """Assert that slices step to the bits of the whole when they know the terms of all."""
    size = 4 * method.unit + 99
    method = method.on(long_layout(size))
    rng = np.random.default_rng(3)
    weights, state = rng.normal(size=size).astype(np.float32), method.init(size)
    a, b = method.unit, 3 * method.unit
    owners = [[slice(0, a), slice(b, size)], [slice(a, b)], [slice(size, size)]]
    starts = method.term_starts(size)
    assert method.joint
    for i in range(3):
        gradient = rng.normal(size=size).astype(np.float32)
        new, new_state = method.update(weights, gradient, state, i)
        puts = []
        for own in owners:
            w, g = (np.concatenate([a[s] for s in own]) for a in (weights, gradient))
            slots = {n: np.concatenate([a[s] for s in own]) for n, a in state.items()}
            part = method.part(own)
            assert part is not None
            puts.append((part, own, (w, g, slots, i)))
        terms = None
        for part, own, put in puts:
            mine = part.terms(*put)
            terms = np.zeros((len(starts), mine.shape[1])) if terms is None else terms
            where = [
                k for s in own for k in np.flatnonzero((starts >= s.start) & (starts < s.stop))
            ]
            terms[where] = mine
        assert terms is not None
        for part, own, put in puts:
            found, slots = part.knowing(terms).update(*put)
            np.testing.assert_array_equal(found, np.concatenate([new[s] for s in own]))
            for name, slot in slots.items():
                expected = np.concatenate([new_state[name][s] for s in own])
                np.testing.assert_array_equal(slot, expected)
        weights, state = new, new_state
