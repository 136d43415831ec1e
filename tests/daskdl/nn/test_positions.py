"""The encoding of positions by its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError


@pytest.mark.parametrize("features", [1, 2, 5, 8])
def test_waves(features):
    y = nn.PositionalEncoding(features)(np.zeros((2, 7, features), "f4")).data
    for t in range(7):
        for c in range(features):
            angle = t / 10000 ** ((c - c % 2) / features)
            expected = math.cos(angle) if c % 2 else math.sin(angle)
            np.testing.assert_allclose(y[:, t, c], expected, atol=1e-6)


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"PositionalEncoding: expected .* \(N, T, 4\)"):
        nn.PositionalEncoding(4)(np.ones((2, 3, 5), "f4"))
    with pytest.raises(SettingsError, match="expected above 1, found 0"):
        nn.PositionalEncoding(4, 0)
