"""Transposed convolution: gradients, agreement with PyTorch, what is skipped, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.kernels.convolution import conv2d as kernel_of
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

pairs = st.tuples(st.integers(1, 3), st.integers(1, 3))


@pytest.mark.slow
@settings(max_examples=30)
@given(
    pairs, pairs, pairs, st.tuples(*[st.integers(0, 2)] * 4), st.integers(0, 2), st.integers(1, 2)
)
@example((3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 0, 4)
@example((5, 5), (1, 1), (1, 1), (2, 2, 2, 2), 0, 4)
def test_gradient(kernel, stride, dilation, pad, more, groups):
    output_pad = tuple(min(more, step - 1) for step in stride)
    lengths = [
        3 * s - pad[2 * i] - pad[2 * i + 1] + (k - 1) * d + 1
        for i, (s, k, d) in enumerate(zip(stride, kernel, dilation, strict=True))
    ]
    assume(min(lengths) > 0)
    channels = 8 if groups == 4 else 3 * groups
    groups = 1 if groups == 4 else groups
    check_gradient(
        lambda x, w, b: ops.conv_transpose2d(
            x,
            w,
            b,
            stride=stride,
            pad=pad,
            output_pad=output_pad,
            dilation=dilation,
            groups=groups,
        ),
        normal(2, 4, 4, channels),
        normal(channels, *kernel, 8 // groups, seed=1),
        normal(8, seed=2),
    )


@pytest.mark.parametrize(
    ("size", "stride", "pad", "more", "dilation", "groups"),
    [
        (3, 1, 1, 0, 1, 1),
        (4, 2, 1, 0, 1, 1),
        (3, 2, 1, 1, 1, 1),
        (2, 2, 0, 0, 1, 1),
        (2, 3, 0, 2, 1, 1),
        (3, 2, 2, 1, 2, 4),
        (3, 2, 1, 0, 1, 16),
    ],
)
def test_agrees_with_pytorch(size, stride, pad, more, dilation, groups, torch):
    arrays = normal(2, 6, 7, 16), normal(16, size, size, 16 // groups, seed=1) / 9, normal(16)
    arrays = [a.astype("f4") for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = torch.nn.functional.conv_transpose2d(
        theirs[0].permute(0, 3, 1, 2), theirs[1].permute(0, 3, 1, 2), theirs[2], stride, pad, more,
        groups, dilation,
    ).permute(0, 2, 3, 1)  # fmt: skip
    expected.square().sum().backward()
    ours = [Tensor(a, requires_grad=True) for a in arrays]
    result = ops.conv_transpose2d(
        *ours,
        stride=(stride, stride),
        pad=(pad,) * 4,
        output_pad=(more, more),
        dilation=(dilation, dilation),
        groups=groups,
    )
    result.backward(2 * result.data)
    np.testing.assert_allclose(result.data, expected.detach().numpy(), atol=1e-4)
    for mine, other in zip(ours, theirs, strict=True):
        right = other.grad.numpy()
        np.testing.assert_allclose(mine.grad, right, rtol=0, atol=2e-5 * np.abs(right).max())


def test_no_gradient_to_an_input_that_wants_none(monkeypatch):
    weight = Tensor(normal(8, 2, 2, 3), requires_grad=True)
    y = ops.conv_transpose2d(normal(1, 3, 3, 8), weight, None, stride=(2, 2))
    monkeypatch.setattr(kernel_of, "forward", None)
    ops.mean(y).backward()
    assert weight.grad is not None


def test_what_does_not_fit_is_named():
    x, w = normal(1, 3, 3, 8), normal(8, 2, 2, 3)
    for settings_, words in [
        ({"output_pad": (1, 0)}, r"output_pad .* less than stride \(1, 1\), found \(1, 0\)"),
        ({"pad": (2, 2, 0, 0)}, r"pad \(2, 2, 0, 0\) leaves nothing"),
        ({"groups": 3}, r"groups that divide the 8 channels of x, found 3"),
    ]:
        with pytest.raises(ShapeError, match=words):
            ops.conv_transpose2d(x, w, None, **settings_)
    with pytest.raises(ShapeError, match=r"found \(1, 3, 3, 7\) and \(8, 2, 2, 3\)"):
        ops.conv_transpose2d(x[..., 1:], w, None)
    with pytest.raises(ShapeError, match=r"bias of shape \(3,\), found \(2,\)"):
        ops.conv_transpose2d(x, w, np.ones(2))
