"""The TrajGRU over a sequence: gradients, agreement with PyTorch, with and without an input."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ci.bench import peers
from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal


def arguments(n=2, steps=3, size=(5, 6), inputs=3, channels=2, n_links=3, hidden=4, kernel=3):
    """Return all arguments in float64, flows of about a pixel."""
    k = (kernel, kernel)
    shapes = [
        *((n, steps, *size, inputs), (n, *size, channels), (3 * channels, *k, inputs)),
        *((3 * channels, n_links * channels), (3 * channels,), (3 * channels,)),
        *((hidden, *k, inputs), (hidden, *k, channels), (hidden,)),
        *((2 * n_links, *k, hidden), (2 * n_links,)),
    ]
    arrays = [normal(*shape, seed=i) / 4 for i, shape in enumerate(shapes)]
    arrays[-1] *= 4
    if not inputs:
        arrays[0] = arrays[2] = arrays[6] = None
    return arrays


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [0, 3])
@pytest.mark.parametrize(
    ("channels", "kernel", "slope"), [(2, 1, 0.2), (2, 3, 0.0), (2, 3, 0.2), (8, 5, 0.2)]
)
def test_gradient(inputs, channels, kernel, slope):
    check_gradient(
        lambda *a: ops.trajgru(*a, steps=None if inputs else 3, slope=slope),
        *arguments(inputs=inputs, channels=channels, kernel=kernel, hidden=8),
    )


@pytest.mark.parametrize("used", [0, 1])
@pytest.mark.parametrize("size", [(1, 1), (1, 5)])
def test_gradient_with_one_result_unused(used, size):
    check_gradient(lambda *a: ops.trajgru(*a)[used], *arguments(size=size))


def test_final_state_is_the_last_step():
    outputs, h = ops.trajgru(*arguments())
    assert outputs.shape == (2, 3, 5, 6, 2)
    np.testing.assert_array_equal(outputs.data[:, -1], h.data)


def test_one_link_without_a_flow_is_a_gru_at_each_pixel():
    args = arguments(n_links=1, kernel=1)
    args[9], args[10] = 0 * args[9], 0 * args[10]
    outputs, _ = ops.trajgru(*args, slope=1.0)
    x, h, wi, ws, bi, bs = args[:6]
    for t in range(3):
        r, z, n = np.split(x[:, t] @ wi[:, 0, 0].T + bi, 3, axis=-1)
        sr, sz, sn = np.split(h @ ws.T + bs, 3, axis=-1)
        r, z = (1 / (1 + np.exp(-a)) for a in (r + sr, z + sz))
        h = (1 - z) * (n + r * sn) + z * h
        np.testing.assert_allclose(outputs.data[:, t], h, atol=1e-12)


@pytest.mark.parametrize(("channels", "hidden", "kernel"), [(3, 4, 3), (8, 8, 5)])
def test_agrees_with_pytorch(torch, channels, hidden, kernel):
    arrays = arguments(steps=4, size=(9, 10), channels=channels, hidden=hidden, kernel=kernel)
    arrays = [a.astype("f4") for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    first = [t.permute(0, 3, 1, 2) if t.ndim == 4 else t for t in theirs]
    expected = torch.stack(peers.trajgru(first[0].permute(1, 0, 4, 2, 3), *first[1:]))
    expected = expected.permute(1, 0, 3, 4, 2)
    expected.square().mean().backward()

    ours = [Tensor(a, requires_grad=True) for a in arrays]
    outputs, _ = ops.trajgru(*ours)
    ops.mean(outputs * outputs).backward()
    np.testing.assert_allclose(outputs.data, expected.detach().numpy(), atol=2e-5)
    for mine, other in zip(ours, theirs, strict=True):
        right = other.grad.numpy()
        np.testing.assert_allclose(mine.grad, right, atol=1e-4 * np.abs(right).max() + 1e-9)


@pytest.mark.slow
def test_no_argument_is_changed_and_no_layout_matters():
    given_ = arguments(channels=8, hidden=8)
    results = []
    for change in (np.array, np.asfortranarray):
        changed = [change(a) for a in given_]
        for a in changed:
            a.flags.writeable = False
        tensors = [Tensor(a, requires_grad=True) for a in changed]
        outputs, h = ops.trajgru(*tensors)
        kept = outputs.data.copy()
        (ops.mean(outputs) + ops.mean(h * h)).backward()
        np.testing.assert_array_equal(outputs.data, kept)
        results.append([kept, *(t.grad for t in tensors)])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)


def test_a_wrong_argument_is_named():
    right = arguments()
    for k in range(len(right)):
        wrong = right.copy()
        wrong[k] = wrong[k][..., None]
        with pytest.raises(ShapeError) as raised:
            ops.trajgru(*wrong)
        words = r"trajgru: \w+: expected shape \(.*\), found \(.*\)"
        assert re.fullmatch(words, str(raised.value))
    even = right.copy()
    even[2] = even[2][:, :2, :2]
    with pytest.raises(
        ShapeError, match=r"weight_input: expected an odd, square kernel, found \(2, 2\)"
    ):
        ops.trajgru(*even)
    with pytest.raises(ShapeError, match="trajgru: weight_input: expected an array as x is one"):
        ops.trajgru(*right[:2], None, *right[3:])
    with pytest.raises(ShapeError, match="weight_flow_input: expected None exactly if x is None"):
        ops.trajgru(*right[:6], None, *right[7:])
    without = arguments(inputs=0)
    with pytest.raises(SettingsError, match="steps: expected at least 1 without x, found None"):
        ops.trajgru(*without)
    with pytest.raises(SettingsError, match="slope: expected at least 0, found -1"):
        ops.trajgru(*right, slope=-1)
