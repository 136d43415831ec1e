"""Tests of the flow: the closed form of where air goes against steps along the wind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nowcast.simulate.flow import Flow


def flow(seed: int = 0) -> Flow:
    return Flow.draw(np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("start", "end"), [(0.0, 3 * 3600.0), (40_000.0, 36_000.0)])
def test_air_goes_where_the_wind_blows_it(seed: int, start: float, end: float) -> None:
    wind, place = flow(seed), np.array([80e3, -60e3])
    path = solve_ivp(
        lambda t, at: np.array(wind.wind(t, at[0], at[1])), (start, end), place, rtol=1e-9, atol=0.1
    )
    matrix, shift = wind.carry(start, end)
    assert np.linalg.norm(shift) > 20e3
    np.testing.assert_allclose(matrix @ place + shift, path.y[:, -1], atol=1.0)


@pytest.mark.parametrize(
    "gradient", [((0.0, 0.0), (0.0, 0.0)), ((0.0, 3e-5), (0.0, 0.0)), ((0.0, -3e-5), (3e-5, 0.0))]
)
def test_still_shear_and_rotation_are_exact(gradient: tuple[tuple[float, float], ...]) -> None:
    turn = Flow((0.0, 0.0), (0.0, 0.0), 3600.0, 0.0, gradient)
    matrix, shift = turn.carry(0.0, 10_000.0)
    np.testing.assert_array_equal(shift, 0.0)
    expected = {
        (0.0, 0.0): np.eye(2),
        (3e-5, 0.0): np.array([[1.0, 0.3], [0.0, 1.0]]),
        (-3e-5, 3e-5): np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]),
    }[gradient[0][1], gradient[1][0]]
    np.testing.assert_allclose(matrix, expected, atol=1e-12)


def test_areas_stay_and_there_and_back_is_where_it_was() -> None:
    there, shift = flow().carry(0.0, 9000.0)
    back, again = flow().carry(9000.0, 0.0)
    assert np.linalg.det(there) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(back @ there, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(back @ shift + again, 0.0, atol=1e-3)


def test_many_starts_at_once() -> None:
    starts = np.array([[0.0, 600.0], [7200.0, -600.0]])
    matrices, shifts = flow().carry(starts, 5000.0)
    assert matrices.shape == (2, 2, 2, 2)
    for index, start in np.ndenumerate(starts):
        matrix, shift = flow().carry(float(start), 5000.0)
        np.testing.assert_allclose(matrices[index], matrix)
        np.testing.assert_allclose(shifts[index], shift)


@pytest.mark.parametrize("seed", range(8))
def test_wind_is_sheared_and_turns_slowly(seed: int) -> None:
    wind = flow(seed)
    x, y = np.meshgrid(np.linspace(-120e3, 120e3, 5), np.linspace(-120e3, 120e3, 5))
    u, v = wind.wind(0.0, x, y)
    speed = np.hypot(u, v)
    assert 3.0 < speed.min() < speed.max() < 25.0
    assert speed.max() - speed.min() > 2.0
    later = np.array([wind.wind(60.0 * m, 0.0, 0.0) for m in range(0, 1440, 10)])
    assert np.abs(np.diff(later, axis=0)).max() < 0.5
    assert np.ptp(later, axis=0).max() > 2.0
