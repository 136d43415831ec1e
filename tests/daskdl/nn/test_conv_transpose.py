"""Transposed convolutions beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@settings(max_examples=10)
@given(
    size=st.integers(2, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 1),
    groups=st.sampled_from([1, 2]),
    bias=st.booleans(),
)
@pytest.mark.parametrize("axes", [1, 2])
def test_agrees_with_pytorch(axes, size, stride, padding, groups, bias, torch):
    name = f"ConvTranspose{axes}d"
    ours = getattr(nn, name)(4, 6, size, stride, padding, stride - 1, bias, 0, 1, groups)
    theirs = getattr(torch.nn, name)(4, 6, size, stride, padding, stride - 1, groups, bias)
    check_like_pytorch(torch, ours, theirs, (2, *(4, 3)[:axes], 4))


@settings(max_examples=8)
@given(
    size=st.tuples(*[st.integers(2, 3)] * 3),
    stride=st.tuples(*[st.integers(1, 2)] * 3),
    padding=st.tuples(*[st.integers(0, 1)] * 3),
    groups=st.sampled_from([1, 2]),
)
def test_of_volumes_agrees_with_pytorch(size, stride, padding, groups, torch):
    more = tuple(step - 1 for step in stride)
    ours = nn.ConvTranspose3d(2, 4, size, stride, padding, more, True, 0, 1, groups)
    theirs = torch.nn.ConvTranspose3d(2, 4, size, stride, padding, more, groups)
    check_like_pytorch(torch, ours, theirs, (2, 3, 4, 3, 2))


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"ConvTranspose2d: expected .* \(N, H, W, 4\)"):
        nn.ConvTranspose2d(4, 3, 2)(np.ones((1, 3, 3, 3), "f4"))
    with pytest.raises(ShapeError, match=r"ConvTranspose1d: expected .* \(N, T, 4\)"):
        nn.ConvTranspose1d(4, 3, 2)(np.ones((1, 3, 3), "f4"))
    with pytest.raises(ShapeError, match=r"ConvTranspose3d\.stride: expected .* 3 .* \(1, 2\)"):
        nn.ConvTranspose3d(4, 3, 2, (1, 2))
