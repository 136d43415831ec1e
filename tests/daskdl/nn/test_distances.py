"""Distances and angles to learned vectors beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 4)])
@pytest.mark.parametrize("name", ["Euclidean", "Cosine"])
def test_agrees_with_pytorch(name, shape, torch):
    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(5, 4))

        def forward(self, x):
            if name == "Euclidean":
                return (x[..., None, :] - self.weight).norm(dim=-1)
            return torch.nn.functional.cosine_similarity(x[..., None, :], self.weight, dim=-1)

    check_like_pytorch(torch, getattr(nn, name)(4, 5), Theirs(), shape, channels=False)


def test_a_centre_has_finite_slopes():
    layer = nn.Euclidean(3, 2, seed=0)
    y = layer(layer.weight.data.copy())
    y.backward(np.ones((2, 2), "f4"))
    assert y.data[0, 0] < 1e-5
    assert np.isfinite(layer.weight.grad).all()


def test_other_channels_are_refused():
    for layer in (nn.Euclidean(3, 2), nn.Cosine(3, 2)):
        with pytest.raises(ShapeError, match=r"(Euclidean|Cosine): expected .* \(\.\.\., 3\)"):
            layer(normal(2, 4).astype("f4"))
