"""Sums, means and extremes as layers beside PyTorch's."""

from __future__ import annotations

import pytest

from daskdl import nn
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min"])
def test_agrees_with_pytorch(name, axis, keepdims, torch):
    function = {"Max": "amax", "Min": "amin"}.get(name, name.lower())
    check_like_pytorch(
        torch,
        getattr(nn, name)(axis, keepdims),
        lambda x: getattr(torch, function)(x, axis, keepdim=keepdims),
        (2, 3, 4),
        channels=False,
    )


def test_several_axes(torch):
    check_like_pytorch(torch, nn.Mean((0, 2)), lambda x: x.mean((0, 2)), (2, 3, 4), channels=False)
