"""Recurrent operations over sequences of vectors and of images."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.bench.kernels import peers
from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.recurrence import SUMS, arguments, convlstm_arguments, trajgru_arguments


def test_backward_direction_is_forward_of_the_reversed_sequence():
    x, *rest = arguments("lstm", 2, 5)
    other = [a / 2 for a in rest]
    outputs, last, first = ops.bidirectional(ops.lstm, x, rest, other)
    ahead, *expected_last = ops.lstm(x, *rest)
    back, *expected_first = ops.lstm(x[:, ::-1], *other)
    np.testing.assert_allclose(outputs.data[..., :4], ahead.data, atol=1e-12)
    np.testing.assert_allclose(outputs.data[..., 4:], back.data[:, ::-1], atol=1e-12)
    for result, expected in zip((*last, *first), (*expected_last, *expected_first), strict=True):
        np.testing.assert_allclose(result.data, expected.data, atol=1e-12)


@pytest.mark.slow
def test_gradient_of_both_directions():
    x, *rest = arguments("gru", 2, 4)
    check_gradient(
        lambda x, *a: ops.bidirectional(ops.gru, x, a[: len(rest)], a[len(rest) :], lengths=[4, 2]),
        x,
        *rest,
        *(a / 2 for a in rest),
    )


def test_zero_peepholes_are_none():
    *rest, peepholes = arguments("lstm")
    for with_zeros, without in zip(
        ops.lstm(*rest, 0 * peepholes), ops.lstm(*rest, None), strict=True
    ):
        np.testing.assert_allclose(with_zeros.data, without.data, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [0, 1, 3])
@pytest.mark.parametrize(("channels", "kernel"), [(2, 3), (8, 3), (8, 5), (2, 1)])
def test_gradient_of_convlstm(inputs, channels, kernel):
    """All three results reach the loss: outputs and the final state."""
    steps = None if inputs else 3
    check_gradient(
        lambda *a: ops.convlstm(*a, steps=steps),
        *convlstm_arguments(inputs=inputs, channels=channels, kernel=kernel),
    )


@given(
    n=st.integers(1, 3),
    steps=st.integers(1, 4),
    size=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    used=st.sets(st.sampled_from([0, 1, 2]), min_size=1),
)
def test_gradient_with_some_results_unused(n, steps, size, used):
    check_gradient(
        lambda *a: tuple(ops.convlstm(*a)[i] for i in sorted(used)),
        *convlstm_arguments(n, steps, size),
    )


@pytest.mark.parametrize("where", ["state", "gradient to the last state"])
def test_memory_may_lie_in_another_order(where):
    x, h, c, *weights = convlstm_arguments()
    results = []
    for turned in (False, True):
        tensors = [Tensor(w, requires_grad=True) for w in weights]
        state, dc = c, normal(*c.shape, seed=9)
        if turned and where == "state":
            state = np.ascontiguousarray(c.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        elif turned:
            dc = np.asfortranarray(dc)
        outputs, _, last = ops.convlstm(x, h, state, *tensors)
        if where == "state":
            outputs.backward(normal(*outputs.shape, seed=8))
        else:
            last.backward(dc)
        results.append([w.grad for w in tensors])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


IMAGES = {"convlstm": convlstm_arguments, "trajgru": trajgru_arguments}
of_images = pytest.mark.parametrize("operation", IMAGES)


@of_images
def test_final_state_is_the_last_step(operation):
    outputs, *states = getattr(ops, operation)(*IMAGES[operation]())
    np.testing.assert_array_equal(outputs.data[:, -1], states[0].data)
    assert outputs.shape == (2, 3, 5, 6, 2)
    assert {state.shape for state in states} == {(2, 5, 6, 2)}


@pytest.mark.parametrize("operation", [*SUMS, *IMAGES])
def test_a_wrong_argument_is_named(operation):
    right = list(arguments(operation) if operation in SUMS else IMAGES[operation]())
    for k in range(len(right)):
        wrong = right.copy()
        wrong[k] = wrong[k][..., None]
        words = rf"{operation}: \w+: expected shape \(.*\), found \(.*\)"
        with pytest.raises(ShapeError) as raised:
            getattr(ops, operation)(*wrong)
        assert re.fullmatch(words, str(raised.value))


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [0, 3])
@pytest.mark.parametrize(
    ("channels", "kernel", "slope"), [(2, 1, 0.2), (2, 3, 0.0), (2, 3, 0.2), (8, 5, 0.2)]
)
def test_gradient_of_trajgru(inputs, channels, kernel, slope):
    check_gradient(
        lambda *a: ops.trajgru(*a, steps=None if inputs else 3, slope=slope),
        *trajgru_arguments(inputs=inputs, channels=channels, kernel=kernel, hidden=8),
    )


@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize("size", [(1, 1), (1, 5)])
def test_gradient_with_one_result_unused(used, size):
    check_gradient(lambda *a: ops.trajgru(*a)[used], *trajgru_arguments(size=size))


def test_one_link_without_a_flow_is_a_gru_at_each_pixel():
    args = trajgru_arguments(n_links=1, kernel=1)
    args[9], args[10] = 0 * args[9], 0 * args[10]
    outputs, _ = ops.trajgru(*args, slope=1.0)
    x, h, wi, ws, bi, bs = args[:6]
    for t in range(3):
        r, z, n = np.split(x[:, t] @ wi[:, 0, 0].T + bi, 3, axis=-1)
        sr, sz, sn = np.split(h @ ws.T + bs, 3, axis=-1)
        r, z = (1 / (1 + np.exp(-a)) for a in (r + sr, z + sz))
        h = (1 - z) * (n + r * sn) + z * h
        np.testing.assert_allclose(outputs.data[:, t], h, atol=1e-12)


@of_images
@pytest.mark.parametrize("inputs", [0, 4])
@pytest.mark.parametrize(("channels", "kernel"), [(3, 3), (8, 3), (16, 5)])
def test_agrees_with_pytorch(operation, inputs, channels, kernel, torch):
    """Without an input here, PyTorch's layer gets one of zeros."""
    sizes = {"steps": 4, "size": (9, 10), "channels": channels, "kernel": kernel}
    arrays, filled = (IMAGES[operation](inputs=n, **sizes) for n in (inputs, inputs or 1))
    theirs = [
        torch.tensor(0 * b if a is None else a, dtype=torch.float32, requires_grad=True)
        for a, b in zip(arrays, filled, strict=True)
    ]
    x, *rest = (t.movedim(-1, -3) if t.ndim > 3 else t for t in theirs)
    expected = torch.stack(getattr(peers, operation)(x.transpose(0, 1), *rest), 1).movedim(-3, -1)
    expected.square().mean().backward()

    ours = [None if a is None else Tensor(a.astype("f4"), requires_grad=True) for a in arrays]
    outputs, *_ = getattr(ops, operation)(*ours, steps=None if inputs else 4)
    ops.mean(outputs * outputs).backward()
    np.testing.assert_allclose(outputs.data, expected.detach().numpy(), atol=2e-5)
    tolerance = {"convlstm": 2e-5, "trajgru": 1e-4}[operation]
    for mine, other in zip(ours, theirs, strict=True):
        if mine is not None:
            right = other.grad.numpy()
            np.testing.assert_allclose(
                mine.grad, right, atol=tolerance * np.abs(right).max() + 1e-9
            )


@pytest.mark.slow
@of_images
def test_no_argument_is_changed_and_no_layout_matters(operation):
    arrays = IMAGES[operation](channels=8)
    results = []
    for change in (np.array, np.asfortranarray):
        changed = [change(a) for a in arrays]
        for a in changed:
            a.flags.writeable = False
        tensors = [Tensor(a, requires_grad=True) for a in changed]
        outputs = getattr(ops, operation)(*tensors)
        copies = [array.data.copy() for array in outputs]
        (ops.mean(outputs[0]) + ops.mean(outputs[-1] * outputs[1])).backward()
        for before, after in zip(copies, outputs, strict=True):
            np.testing.assert_array_equal(after.data, before)
        results.append([*copies, *(t.grad for t in tensors)])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
