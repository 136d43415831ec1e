"""Tests of rain rates at a probability."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from nowcast.lagrangian.quantile import quantile

RATES = (0.1, 1.0, 10.0)


def drawn(chances: tuple[float, ...], normal: np.ndarray) -> np.ndarray:
    p = np.broadcast_to(np.array(chances, np.float32)[:, None, None], (3, *normal.shape))
    out = np.empty(normal.shape, np.float32)
    quantile(normal.astype(np.float32), np.ascontiguousarray(p), RATES, out)
    return out


def test_members_have_the_probabilities_as_their_distribution() -> None:
    normal = np.random.default_rng(0).normal(size=(400, 500))
    for chances in ((0.6, 0.3, 0.05), (0.02, 0.01, 1e-4), (0.999, 0.9, 0.5)):
        made = drawn(chances, normal)
        for rate, chance in zip(RATES, chances, strict=True):
            found = (made >= rate).mean()
            assert abs(found - chance) < 4 * (chance * (1 - chance) / normal.size) ** 0.5 + 1e-4


def test_more_noise_is_more_rain_and_bounded() -> None:
    z = np.linspace(-4, 9, 600)[None]
    made = drawn((0.6, 0.3, 0.05), z)[0]
    assert (np.diff(made) >= 0).all()
    assert made[0] == 0
    assert made[-1] <= 200 * 1.0001
    at = np.interp(norm.isf(0.3), z[0], made)
    assert abs(at - 1) < 0.05


def test_missing_stays_missing() -> None:
    normal = np.zeros((2, 2))
    normal[0, 0] = np.nan
    assert np.isnan(drawn((0.6, 0.3, 0.05), normal)[0, 0])
    assert np.isnan(drawn((np.nan, np.nan, np.nan), normal)).all()
