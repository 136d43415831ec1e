"""Images sampled at places: gradients to both, and PyTorch's numbers for every setting."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import check_gradient, normal


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_images(mode, padding_mode, align_corners, torch):
    x, grid = normal(2, 5, 7, 3), 1.5 * np.tanh(normal(2, 4, 6, 2, seed=1))
    given = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    names = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    ours = torch.tensor(x).movedim(-1, 1).requires_grad_()
    places = torch.tensor(grid, requires_grad=True)
    right = torch.nn.functional.grid_sample(ours, places, names[mode], padding_mode, align_corners)
    found = ops.grid_sample(x, grid, **given)
    np.testing.assert_allclose(found.data, right.detach().movedim(1, -1), atol=1e-9)
    check_gradient(lambda t: ops.grid_sample(t, grid, **given), x)
    if mode == "linear":
        check_gradient(lambda t, g: ops.grid_sample(t, g, **given), x, grid)


def test_volumes(torch):
    x, grid = normal(2, 4, 5, 3, 2), np.tanh(normal(2, 3, 2, 4, 3, seed=1))
    right = torch.nn.functional.grid_sample(
        torch.tensor(x).movedim(-1, 1), torch.tensor(grid), align_corners=False
    )
    found = ops.grid_sample(x, grid)
    np.testing.assert_allclose(found.data, right.movedim(1, -1), atol=1e-9)
    check_gradient(ops.grid_sample, x, grid)


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"expected x \(N, ..., C\) and grid \(N, ..., 2\)"):
        ops.grid_sample(np.ones((1, 2, 2, 1)), np.ones((1, 2, 2, 3)))
    with pytest.raises(SettingsError, match="found 'square' and 'zeros'"):
        ops.grid_sample(np.ones((1, 2, 2, 1)), np.ones((1, 2, 2, 2)), mode="square")
