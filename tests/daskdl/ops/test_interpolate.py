"""Interpolation at given places: gradients, and PyTorch's linear, cubic and antialiased images."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import SettingsError
from tests.daskdl.gradients import check_gradient, normal


def points(lengths, sizes):
    """Return where the pixels of the result lie, edges on edges."""
    return [
        None,
        *((np.arange(m) + 0.5) * n / m - 0.5 for n, m in zip(lengths, sizes, strict=True)),
        None,
    ]


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
@pytest.mark.parametrize("sizes", [(9, 11), (3, 4), (5, 7)])
@pytest.mark.parametrize("antialias", [False, True])
def test_images(mode, sizes, antialias, torch):
    if antialias and mode == "nearest":
        pytest.skip("there is no such thing")
    x = normal(2, 5, 7, 3)
    scales = [1, sizes[0] / 5, sizes[1] / 7, 1]
    given = {
        "points": points((5, 7), sizes),
        "mode": mode,
        "scales": scales,
        "antialias": antialias,
    }
    if antialias:
        given |= {"exclude_outside": True, "cubic": -0.5}
    check_gradient(lambda t: ops.interpolate(t, **given), x)
    names = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest-exact"}
    right = torch.nn.functional.interpolate(
        torch.tensor(x).movedim(-1, 1), sizes, mode=names[mode], antialias=antialias
    )
    if mode == "nearest":
        given["nearest"] = "round_prefer_ceil"
    np.testing.assert_allclose(ops.interpolate(x, **given).data, right.movedim(1, -1), atol=1e-9)


def test_unknown_modes_are_said():
    with pytest.raises(SettingsError, match="expected nearest, linear or cubic, found 'area'"):
        ops.interpolate(np.ones((1, 2, 2, 1)), points=points((2, 2), (3, 3)), mode="area")
