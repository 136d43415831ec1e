"""Group normalisation beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@settings(max_examples=15)
@given(
    groups=st.integers(1, 3),
    share=st.integers(1, 3),
    pixels=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    affine=st.booleans(),
)
def test_agrees_with_pytorch(groups, share, pixels, affine, torch):
    channels = groups * share
    ours = nn.GroupNorm(groups, channels, 1e-3, affine)
    theirs = torch.nn.GroupNorm(groups, channels, 1e-3, affine)
    check_like_pytorch(torch, ours, theirs, (2, *pixels, channels), tolerance=3e-5)


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match="divisor of the 5 channels, found 2"):
        nn.GroupNorm(2, 5)
    with pytest.raises(ShapeError, match=r"GroupNorm: expected .* \(\.\.\., 4\)"):
        nn.GroupNorm(2, 4)(np.ones((2, 3, 3), "f4"))
