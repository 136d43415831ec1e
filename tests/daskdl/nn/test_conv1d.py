"""The convolution of sequences beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@settings(max_examples=15)
@given(
    size=st.integers(1, 4),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2]),
    bias=st.booleans(),
)
def test_agrees_with_pytorch(size, stride, padding, dilation, groups, bias, torch):
    ours = nn.Conv1d(4, 6, size, stride, padding, bias, 0, dilation, groups)
    theirs = torch.nn.Conv1d(4, 6, size, stride, padding, dilation, groups, bias)
    check_like_pytorch(torch, ours, theirs, (2, 9, 4))


def test_causal_results_see_no_later_step():
    layer, x = nn.Conv1d(3, 2, 3, padding="causal", dilation=2, seed=0), normal(1, 8, 3)
    x = x.astype("f4")
    later = x.copy()
    later[:, 5:] += 1
    assert layer(x).shape == (1, 8, 2)
    np.testing.assert_array_equal(layer(later).data[:, :5], layer(x).data[:, :5])
    assert (layer(later).data[:, 5] != layer(x).data[:, 5]).all()


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"Conv1d: expected an input of shape \(N, T, 3\)"):
        nn.Conv1d(3, 2, 3)(np.ones((2, 5, 4), "f4"))
    with pytest.raises(ShapeError, match=r"a sequence of at least \(5,\) after padding, found \(4"):
        nn.Conv1d(3, 2, 5)(np.ones((2, 4, 3), "f4"))
