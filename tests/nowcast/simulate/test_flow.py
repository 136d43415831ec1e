"""The flow: the closed form of trajectories against integration along the wind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nowcast.simulate.flow import Flow
from nowcast.simulate.weather import STRONGEST, Weather


def flow(seed: int = 0) -> Flow:
    return Flow.draw(np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("start", "end"), [(0.0, 3 * 3600.0), (40_000.0, 36_000.0)])
def test_trajectories_follow_the_wind(seed, start, end):
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
def test_still_shear_and_rotation_are_exact(gradient):
    turn = Flow((0.0, 0.0), (0.0, 0.0), 3600.0, 0.0, gradient)
    matrix, shift = turn.carry(0.0, 10_000.0)
    np.testing.assert_array_equal(shift, 0.0)
    expected = {
        (0.0, 0.0): np.eye(2),
        (3e-5, 0.0): np.array([[1.0, 0.3], [0.0, 1.0]]),
        (-3e-5, 3e-5): np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]),
    }[gradient[0][1], gradient[1][0]]
    np.testing.assert_allclose(matrix, expected, atol=1e-12)


def test_many_starts_at_once():
    starts = np.array([[0.0, 600.0], [7200.0, -600.0]])
    matrices, shifts = flow().carry(starts, 5000.0)
    assert matrices.shape == (2, 2, 2, 2)
    for index, start in np.ndenumerate(starts):
        matrix, shift = flow().carry(float(start), 5000.0)
        np.testing.assert_allclose(matrices[index], matrix)
        np.testing.assert_allclose(shifts[index], shift)


@pytest.mark.parametrize("seed", range(8))
def test_wind_is_sheared_and_turns_slowly(seed):
    wind = flow(seed)
    x, y = np.meshgrid(np.linspace(-120e3, 120e3, 5), np.linspace(-120e3, 120e3, 5))
    u, v = wind.wind(0.0, x, y)
    speed = np.hypot(u, v)
    assert 3.0 < speed.min() < speed.max() < 25.0
    assert speed.max() - speed.min() > 2.0
    later = np.array([wind.wind(60.0 * m, 0.0, 0.0) for m in range(0, 1440, 10)])
    assert np.abs(np.diff(later, axis=0)).max() < 0.5
    assert np.ptp(later, axis=0).max() > 2.0


AXIS = np.arange(-120e3, 121e3, 2e3)
DISC = np.hypot(AXIS[None, :], AXIS[:, None]) < 120e3


def field(weather: Weather, minutes: float) -> np.ndarray:
    return weather.rain_field(60.0 * minutes, AXIS[None, :], AXIS[:, None])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 7])
def test_rain_is_frequent_and_strong_enough_to_learn_from(seed):
    weather = Weather(seed)
    fields = np.stack([field(weather, m)[DISC] for m in range(0, 1440, 20)])
    assert fields.dtype == np.float32
    assert np.isfinite(fields).all()
    assert fields.min() == 0.0
    assert fields.max() <= STRONGEST
    wet = (fields >= 0.1).mean(axis=1)
    assert 0.08 < wet.mean() < 0.25
    assert ((wet > 0.04) & (wet < 0.35)).mean() > 0.9
    strongest = np.median(fields.max(axis=1))
    assert 20.0 < strongest < 100.0


def test_rain_is_the_same_on_axes_and_at_points():
    weather = Weather(2, hours=3)
    grid = field(weather, 60)
    x, y = np.meshgrid(AXIS, AXIS)
    np.testing.assert_allclose(weather.rain_field(3600.0, x, y), grid, rtol=1e-4, atol=1e-4)
    row, column = np.unravel_index(grid.argmax(), grid.shape)
    single = weather.rain_field(3600.0, AXIS[column], AXIS[row])
    assert single.shape == ()
    assert float(single) == pytest.approx(float(grid.max()), rel=1e-4)


def skill(forecast: np.ndarray, observed: np.ndarray) -> float:
    hit = ((forecast >= 1) & (observed >= 1)).sum()
    return float(hit / ((forecast >= 1) | (observed >= 1)).sum())


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_rain_moves_along_the_flow_while_it_grows_and_fades(seed):
    weather = Weather(seed)
    carried: dict[int, list[float]] = {10: [], 30: [], 60: []}
    stayed: dict[int, list[float]] = {10: [], 30: [], 60: []}
    x, y = np.meshgrid(AXIS, AXIS)
    for start in range(60, 1300, 95):
        before = field(weather, start)
        for lead in carried:
            observed = field(weather, start + lead)[DISC]
            matrix, shift = weather.flow.carry(60.0 * (start + lead), 60.0 * start)
            origin = np.einsum("ij,jyx->iyx", matrix, np.stack([x, y])) + shift[:, None, None]
            moved = weather.rain_field(60.0 * start, origin[0], origin[1])[DISC]
            carried[lead].append(skill(moved, observed))
            stayed[lead].append(skill(before[DISC], observed))
    along, still = ({k: np.mean(v) for k, v in each.items()} for each in (carried, stayed))
    # Extrapolation beats persistence, and both lose skill as rain grows and fades.
    assert all(along[lead] > still[lead] + 0.1 for lead in along)
    assert along[10] > 0.6
    assert along[10] > along[30] + 0.2 > along[60] + 0.3
    assert still[60] < 0.15


def test_motion_is_the_flow():
    weather = Weather(4)
    u, v = weather.motion(5000.0, AXIS[None, :], AXIS[:, None])
    assert u.shape == v.shape == (121, 121)
    (ux, uy), _ = weather.flow.gradient
    assert (u[0, -1] - u[0, 0]) / 240e3 == pytest.approx(ux)
    assert (u[-1, 0] - u[0, 0]) / 240e3 == pytest.approx(uy)


def test_seeds_give_different_days_and_longer_days_begin_alike():
    assert not np.array_equal(field(Weather(0), 300), field(Weather(1), 300))
    np.testing.assert_array_equal(field(Weather(0, hours=2), 119), field(Weather(0, hours=24), 119))


@pytest.mark.slow
def test_cores_grow_and_fade():
    weather = Weather(1, hours=6)
    cores = weather.cells.cores
    rain = {}
    for age in (0.03, 0.4, 0.97):
        at_age = []
        for k in np.flatnonzero(cores.birth > 0):
            time = float(cores.birth[k] + age * cores.life[k])
            middles, _ = cores[np.array([k])].positions(weather.flow, time)
            at_age.append(float(weather.rain_field(time, middles[0, 0], middles[0, 1])))
        rain[age] = np.mean(at_age)
    assert rain[0.4] > 2 * rain[0.03]
    assert rain[0.4] > 2 * rain[0.97]
