"""Recurrent operations equal a loop over steps, whatever their arguments look like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl import ops
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.tensor import Tensor
from tests.daskdl.gradients import as_tuple, check_gradient, layouts
from tests.daskdl.recurrence import SUMS, arguments, loop

OPERATIONS = list(SUMS)
# Kernels of the others compile for half a minute; every day the LSTM stands for all.
every = pytest.mark.parametrize(
    "operation",
    [name if name == "lstm" else pytest.param(name, marks=pytest.mark.slow) for name in OPERATIONS],
)


@st.composite
def cases(draw, least=0):
    """Draw sizes, lengths and a direction."""
    n, steps = draw(st.integers(least, 4)), draw(st.integers(least, 4))
    lengths = draw(st.none() | st.lists(st.integers(0, steps), min_size=n, max_size=n))
    lengths = None if lengths is None else np.array(lengths, dtype=int)
    sizes = n, steps, draw(st.integers(1, 3)), draw(st.integers(1, 5))
    return sizes, {"lengths": lengths, "reverse": draw(st.booleans())}


@every
@given(case=cases(), dtype=st.sampled_from(["f8", "f4"]))
def test_is_a_loop_over_the_steps(operation, case, dtype):
    sizes, settings = case
    inputs = arguments(operation, *sizes)
    results = getattr(ops, operation)(*(a.astype(dtype) for a in inputs), **settings)
    for result, expected in zip(results, loop(operation, *inputs, **settings), strict=True):
        assert result.dtype == dtype
        np.testing.assert_allclose(result.data, expected, atol=1e-12 if dtype == "f8" else 2e-5)


@every
@given(case=cases(least=1), used=st.sets(st.integers(0, 1), min_size=1))
def test_gradient(operation, case, used):
    sizes, settings = case
    check_gradient(
        lambda *a: tuple(getattr(ops, operation)(*a, **settings)[i] for i in sorted(used)),
        *arguments(operation, *sizes),
    )


@every
@pytest.mark.parametrize(("n", "steps"), [(0, 3), (2, 0), (0, 0)])
def test_gradients_of_nothing_are_zero(operation, n, steps):
    tensors = [Tensor(a, requires_grad=True) for a in arguments(operation, n, steps)]
    outputs = getattr(ops, operation)(*tensors)[0]
    outputs.backward(np.ones(outputs.shape))
    for tensor in tensors:
        np.testing.assert_array_equal(tensor.grad, np.zeros(tensor.shape))


@every
def test_steps_beyond_a_length_are_not_read(operation):
    inputs = arguments(operation, 3, 4)
    lengths = np.array([2, 4, 0])
    results = []
    for junk in (1.0, np.nan):
        x = inputs[0].copy()
        x[np.arange(4) >= lengths[:, None]] = junk
        tensors = [Tensor(a, requires_grad=True) for a in (x, *inputs[1:])]
        outputs, h, *_ = getattr(ops, operation)(*tensors, lengths=lengths)
        dy = np.full(outputs.shape, 1.0)
        dy[np.arange(4) >= lengths[:, None]] = junk
        outputs.backward(dy)
        results.append([outputs.data, h.data, *(t.grad for t in tensors)])
    for with_one, with_nan in zip(*results, strict=True):
        np.testing.assert_array_equal(with_one, with_nan)


@every
def test_no_layout_matters_and_no_argument_is_changed(operation):
    inputs = arguments(operation, 3, 4, 2, 5)

    def run(arrays):
        tensors = [Tensor(a, requires_grad=True) for a in arrays]
        results = getattr(ops, operation)(*tensors)
        sum_ = ops.mean(results[0] * results[0])
        for result in results[1:]:
            sum_ = sum_ + ops.mean(result)
        sum_.backward()
        return [r.data for r in results] + [t.grad for t in tensors]

    expected = run([a.copy() for a in inputs])
    for changed in zip(*map(layouts, inputs), strict=True):
        for actual, right in zip(run(changed), expected, strict=True):
            np.testing.assert_allclose(actual, right, atol=1e-12)
        for before, after in zip(inputs, changed, strict=True):
            np.testing.assert_array_equal(before, after)


@every
def test_without_states_and_biases_they_are_zero(operation):
    x, *rest = arguments(operation)
    n_states = 2 if operation == "lstm" else 1
    weights = rest[n_states : n_states + 2]
    others = rest[n_states + 2 :]
    empty = getattr(ops, operation)(x, *[None] * n_states, *weights, *[None] * len(others))
    zeros = [np.zeros_like(a) for a in (*rest[:n_states], *others)]
    full = getattr(ops, operation)(x, *zeros[:n_states], *weights, *zeros[n_states:])
    for result, expected in zip(empty, full, strict=True):
        np.testing.assert_array_equal(result.data, expected.data)


@every
def test_two_threads_agree_with_one(operation):
    inputs = arguments(operation, 5, 4)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            tensors = [Tensor(a, requires_grad=True) for a in inputs]
            outputs = getattr(ops, operation)(*tensors, lengths=[4, 1, 0, 3, 4])[0]
            outputs.backward(np.cos(outputs.data))
        results.append([outputs.data, *(t.grad for t in tensors)])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)


@every
def test_nan_shows_in_its_sample_alone(operation):
    inputs = [a.astype("f4") for a in arguments(operation, 3, 4)]
    inputs[0][1, 2, 0] = np.nan
    outputs = getattr(ops, operation)(*inputs)[0].data
    assert np.isnan(outputs[1, 2:]).all()
    assert np.isfinite(outputs[[0, 2]]).all()
    assert np.isfinite(outputs[1, :2]).all()


@every
@pytest.mark.parametrize("reverse", [False, True])
def test_a_sequence_in_two_halves_is_the_whole(operation, reverse):
    x, *rest = arguments(operation, 2, 6)
    n_states = 2 if operation == "lstm" else 1
    states, weights = rest[:n_states], rest[n_states:]
    whole = as_tuple(getattr(ops, operation)(x, *states, *weights, reverse=reverse))
    halves = [x[:, :3], x[:, 3:]]
    outputs = []
    for half in reversed(halves) if reverse else halves:
        output, *states = getattr(ops, operation)(half, *states, *weights, reverse=reverse)
        outputs.append(output.data)
    joined = np.concatenate(outputs[::-1] if reverse else outputs, axis=1)
    np.testing.assert_allclose(joined, whole[0].data, atol=1e-12)
    np.testing.assert_allclose(states[0].data, whole[1].data, atol=1e-12)
