"""Normal numbers that layers add and multiply by: their moments, seeds, and inference."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError

X = np.full((100, 100), 2, np.float32)


@pytest.mark.parametrize(
    ("layer", "deviation"), [(nn.GaussianDropout(0.2), 2 * 0.5), (nn.GaussianNoise(0.3), 0.3)]
)
def test_moments_and_seeds(layer, deviation):
    with nn.drawing(1):
        first, second = layer(X).data, layer(X).data
    with nn.drawing(1):
        np.testing.assert_array_equal(layer(X).data, first)
    assert (first != second).mean() > 0.99
    assert first.dtype == np.float32
    assert first.mean() == pytest.approx(2, abs=5 * deviation / 100)
    assert first.std() == pytest.approx(deviation, rel=0.05)
    np.testing.assert_array_equal(layer.eval()(X).data, X)
    layer.train()


def test_sampler():
    layer, log_variance = nn.GaussianSampler(), np.full(X.shape, np.log(9), np.float32)
    with nn.drawing(1):
        y = layer(X, log_variance).data
    assert y.mean() == pytest.approx(2, abs=0.15)
    assert y.std() == pytest.approx(3, rel=0.05)
    np.testing.assert_array_equal(layer.eval()((X, log_variance)).data, X)


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match="0 <= rate < 1, found 1"):
        nn.GaussianDropout(1)
    with pytest.raises(SettingsError, match="sigma >= 0, found -1"):
        nn.GaussianNoise(-1)
    with pytest.raises(ShapeError, match="GaussianSampler: expected two inputs of one shape"):
        nn.GaussianSampler()(X, X[:1])
