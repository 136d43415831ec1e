"""Tests of the texture: its statistics, and that the flow carries and time renews it."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.simulate.flow import Flow
from nowcast.simulate.texture import Texture

FLOW = Flow((12.0, -5.0), (2.0, 1.0), 40_000.0, 1.0, ((5e-6, 2e-5), (-1e-5, -5e-6)))
X, Y = (axis.astype(np.float32).ravel() for axis in np.mgrid[-100e3:100e3:2e3, -100e3:100e3:2e3])


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


@pytest.mark.parametrize("time", [0.0, 1234.0, 40_000.0])
def test_mean_and_variance(time: float) -> None:
    noise = Texture(5).sample(FLOW, time, X, Y)
    assert noise.dtype == np.float32
    assert noise.mean() == pytest.approx(0.0, abs=0.3)
    assert noise.std() == pytest.approx(1.0, abs=0.2)


def test_near_points_are_alike_and_far_ones_are_not() -> None:
    noise = Texture(5).sample(FLOW, 500.0, X, Y)
    near = Texture(5).sample(FLOW, 500.0, X + np.float32(2e3), Y)
    far = Texture(5).sample(FLOW, 500.0, X + np.float32(60e3), Y)
    assert correlation(noise, near) > 0.8
    assert abs(correlation(noise, far)) < 0.35


def test_it_is_carried_by_the_flow_and_renewed() -> None:
    texture, start = Texture(2), 10_000.0
    before = texture.sample(FLOW, start, X, Y)
    along = {}
    for minutes in (10, 30, 120):
        matrix, shift = FLOW.carry(start, start + 60.0 * minutes)
        x, y = matrix.astype(np.float32) @ np.stack([X, Y]) + shift.astype(np.float32)[:, None]
        along[minutes] = correlation(before, texture.sample(FLOW, start + 60.0 * minutes, x, y))
    assert along[10] > 0.85
    assert along[10] > along[30] + 0.1
    assert abs(along[120]) < 0.3
    # Without the flow it is soon another one.
    assert correlation(before, texture.sample(FLOW, start + 1200.0, X, Y)) < 0.5


def test_seeds_differ_and_repeat() -> None:
    one, again, other = (Texture(s).sample(FLOW, 100.0, X, Y) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert abs(correlation(one, other)) < 0.3
