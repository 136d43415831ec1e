"""Layers that change the size of images beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch

pairs = st.tuples(st.integers(1, 7), st.integers(1, 7))


@settings(max_examples=15)
@given(size=pairs, image=pairs, align_corners=st.booleans())
def test_resize_agrees_with_pytorch(size, image, align_corners, torch):
    def theirs(x):
        return torch.nn.functional.interpolate(
            x, size, mode="bilinear", align_corners=align_corners
        )

    check_like_pytorch(torch, nn.Resize(size, align_corners), theirs, (2, *image, 3))


@pytest.mark.parametrize(
    ("scale", "mode", "shape"),
    [
        (3, "nearest", (2, 4, 2)),
        ((2, 3), "nearest", (2, 3, 4, 2)),
        ((1, 2, 3), "nearest", (2, 2, 3, 2, 2)),
        (2, "bilinear", (2, 3, 4, 2)),
    ],
)
def test_upsampling_agrees_with_pytorch(scale, mode, shape, torch):
    def theirs(x):
        return torch.nn.functional.interpolate(x, scale_factor=scale, mode=mode)

    check_like_pytorch(torch, nn.Upsample(scale, mode), theirs, shape)


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match="nearest or bilinear, found 'cubic'"):
        nn.Upsample(2, "cubic")
    with pytest.raises(ShapeError, match=r"Upsample: expected an input \(N, H, W, C\) .*\(1, 4, 3"):
        nn.Upsample(2, "bilinear")(np.ones((1, 4, 3), "f4"))
    with pytest.raises(ShapeError, match=r"Upsample: .* scale \(2, 2\), found \(1, 4, 3\)"):
        nn.Upsample((2, 2))(np.ones((1, 4, 3), "f4"))
    with pytest.raises(ShapeError, match=r"Resize\.size: .* found 0"):
        nn.Resize(0)
