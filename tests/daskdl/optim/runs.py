"""A small descent to compare optim methods, and the checks that all of them pass."""

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
#: Methods that step each number by itself; EVERY adds those of whole parameters or vectors.
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
    """Return the gradient of a bowl around 1; its steepness varies by weight and by iteration."""
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
    """Return the weights after as many steps of a PyTorch method."""
    weights = torch.tensor(start().astype(dtype), requires_grad=True)
    method = make([weights])
    for i in range(STEPS):
        weights.grad = torch.tensor(gradients(weights.detach().numpy(), i))
        method.step(*([lambda: 0.0] if isinstance(method, torch.optim.LBFGS) else []))
    return weights.detach().numpy()


def assert_close(w: np.ndarray, expected: np.ndarray, rtol: float = 1e-10) -> None:
    """Assert that weights agree as well as their dtype allows after a run, or ``rtol`` in f8."""
    if w.dtype == np.float32:
        rtol = 1e-3  # drawn settings may reverse steps, which enlarges rounding errors
    np.testing.assert_allclose(w, expected, rtol=0, atol=rtol * max(1, np.abs(expected).max()))


def check_pure(method: Method) -> None:
    """Assert that a method pickles, and that an update is pure and can be scaled.

    It changes no input, gives the same result twice, and new vectors share no memory with others.
    """
    assert pickle.loads(pickle.dumps(method)) == method
    weights, state = start(), method.init(SIZE)
    for i in range(4):
        gradient = gradients(weights, i)
        arrays = [weights, gradient, *state.values()]
        copies = [a.copy() for a in arrays]
        for array in arrays:
            array.flags.writeable = False  # as Dask hands them out
        results = [method.update(weights, gradient, state, i) for _ in range(2)]
        results.append(method.update(weights, 2 * gradient, state, i, scale=0.5))
        for before, after in zip(copies, arrays, strict=True):
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
                same = any(array is old for old in arrays)  # as while Accumulate gathers gradients
                assert same or not any(np.shares_memory(array, o) for o in arrays), name
                assert array.dtype == np.float32
        weights, state = new, new_state


cuts = st.lists(st.integers(0, 300), max_size=4)


def check_slices(method: Method, points: Sequence[int], large: bool = False) -> None:
    """Assert that a step of some slices has the bits of the whole step."""
    size = 301 + large * (1 << 20)
    rng = np.random.default_rng(len(points))
    weights = start(size)
    state = method.init(size)
    stops = sorted({0, *(p + large * 100_003 * i for i, p in enumerate(points)), size})
    slices = [slice(a, b) for a, b in pairwise(stops)]
    owners = [slices[::2], slices[1::2]]  # several slices each, as in a gang
    parts = [method.part(owned) for owned in owners]

    def join(array: np.ndarray, owned: list[slice]) -> np.ndarray:
        return np.concatenate([array[s] for s in owned]) if array.ndim and owned else array[:0]

    for i in range(2):
        gradient = rng.normal(size=size).astype(np.float32)
        new, new_state = method.update(weights, gradient, state, i)
        for part, owned in zip(parts, owners, strict=True):
            assert part is not None
            here = {n: join(a, owned) if a.ndim else a for n, a in state.items()}
            result = part.update(join(weights, owned), join(gradient, owned), here, i)
            np.testing.assert_array_equal(result[0], join(new, owned))
            for name, value in result[1].items():
                whole = new_state[name]
                np.testing.assert_array_equal(value, join(whole, owned) if whole.ndim else whole)
        weights, state = new, new_state


def long_layout(size: int) -> Layout:
    """Return a layout of ``size`` numbers in parameters named as in LAYOUT."""
    rest = size - 17 - 61
    return Layout(LAYOUT.names, ((17,), (61,), (rest, 1)))


def check_joint_slices(method: Method) -> None:
    """Assert that slices that know the terms of all have the bits of the whole step."""
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
        for owned in owners:
            w, g = (np.concatenate([a[s] for s in owned]) for a in (weights, gradient))
            slots = {n: np.concatenate([a[s] for s in owned]) for n, a in state.items()}
            part = method.part(owned)
            assert part is not None
            puts.append((part, owned, (w, g, slots, i)))
        terms = None
        for part, owned, put in puts:
            computed = part.terms(*put)
            terms = np.zeros((len(starts), computed.shape[1])) if terms is None else terms
            where = [
                k for s in owned for k in np.flatnonzero((starts >= s.start) & (starts < s.stop))
            ]
            terms[where] = computed
        assert terms is not None
        for part, owned, put in puts:
            updated, slots = part.knowing(terms).update(*put)
            np.testing.assert_array_equal(updated, np.concatenate([new[s] for s in owned]))
            for name, slot in slots.items():
                expected = np.concatenate([new_state[name][s] for s in owned])
                np.testing.assert_array_equal(slot, expected)
        weights, state = new, new_state
