"""The layer that brings vectors to one length, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 5, 4)])
def test_agrees_with_pytorch(shape, torch):
    theirs = torch.nn.functional.normalize
    check_like_pytorch(torch, nn.Normalize(), lambda x: theirs(x, dim=-1), shape, channels=False)


def test_learned_scale_starts_as_given():
    x = normal(2, 3, 3, 4).astype("f4")
    y = nn.Normalize(4, scale=20)(x).data
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), 20, rtol=1e-5)
    with pytest.raises(ShapeError, match=r"Normalize: expected .* \(\.\.\., 4\)"):
        nn.Normalize(4)(x[..., :3])
