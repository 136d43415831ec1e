"""Convolutions of volumes beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


def triples(least, most):
    return st.tuples(*[st.integers(least, most)] * 3)


@settings(max_examples=8)
@given(
    size=triples(1, 3),
    stride=triples(1, 2),
    padding=triples(0, 1),
    dilation=triples(1, 2),
    groups=st.sampled_from([1, 2]),
)
def test_agrees_with_pytorch(size, stride, padding, dilation, groups, torch):
    ours = nn.Conv3d(2, 4, size, stride, padding, True, 0, dilation, groups)
    theirs = torch.nn.Conv3d(2, 4, size, stride, padding, dilation, groups)
    check_like_pytorch(torch, ours, theirs, (2, 5, 6, 5, 2))


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"Conv3d: expected an input of shape .*, found \(2, 3\)"):
        nn.Conv3d(3, 2, 3)(np.ones((2, 3), "f4"))
    with pytest.raises(ShapeError, match=r"a volume of at least \(3, 3, 3\) after padding"):
        nn.Conv3d(3, 2, 3)(np.ones((1, 2, 4, 4, 3), "f4"))
