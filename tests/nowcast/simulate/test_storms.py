"""Simulated storms, their systems, texture and places."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from nowcast.simulate.archive import Days
from nowcast.simulate.flow import Flow
from nowcast.simulate.regime import draw_systems
from nowcast.simulate.storms import LONGEST, REACH, SHORTEST, Storms
from nowcast.simulate.texture import Points, Texture

STILL = Flow((10.0, 0.0), (0.0, 0.0), 3600.0, 0.0, ((0.0, 0.0), (0.0, 0.0)))


def test_storms_are_born_in_every_hour_and_die():
    storms = Storms.draw(0, 24.0, 56.0)
    hours = np.histogram(storms.shields.birth, np.arange(0, 23) * 3600.0)[0]
    assert hours.min() >= 1
    assert hours.max() <= 6
    assert storms.shields.life.min() >= SHORTEST
    assert storms.shields.life.max() <= LONGEST
    assert np.hypot(storms.shields.x, storms.shields.y).max() <= REACH
    assert 4 * len(storms.shields) <= len(storms.cores) <= 12 * len(storms.shields)


def test_a_core_lives_within_a_shield():
    storms = Storms.draw(1, 6.0, 56.0)
    first, last = storms.shields.birth, storms.shields.birth + storms.shields.life
    for k in range(len(storms.cores)):
        parent = np.flatnonzero(storms.shields.when == storms.cores.when[k])
        assert parent.size == 1
        assert storms.cores.birth[k] >= first[parent] - 1e-6
        assert storms.cores.birth[k] + storms.cores.life[k] <= last[parent] + 1e-6


def test_a_longer_day_begins_with_the_same_storms():
    short, long = Storms.draw(3, 2.0, 56.0), Storms.draw(3, 24.0, 56.0)
    for name in ("shields", "cores"):
        few, many = getattr(short, name), getattr(long, name)
        assert len(few) < len(many)
        for field in fields(few):
            np.testing.assert_array_equal(
                getattr(few, field.name), getattr(many, field.name)[: len(few)]
            )
    # The other storms of the long day come after the end of the short one.
    assert long.shields[np.arange(len(short.shields), len(long.shields))].birth.min() >= 2 * 3600.0


def test_vigour_grows_faster_than_it_fades():
    cells = Storms.draw(0, 1.0, 24.0).shields[np.array([0])]
    ages = np.linspace(0, 1, 201)
    vigour = np.array([cells.vigour(cells.birth[0] + a * cells.life[0])[0] for a in ages])
    assert vigour[[0, -1]] == pytest.approx(0.0, abs=1e-9)
    assert vigour.max() == pytest.approx(1.0, abs=1e-3)
    assert 0.35 < ages[vigour.argmax()] < 0.45


def test_cells_move_and_are_alive_only_in_their_lives():
    cells = Storms.draw(0, 3.0, 56.0).cores
    time = 3600.0
    living = cells.alive(time)
    expected = (cells.birth < time) & (time < cells.birth + cells.life)
    assert 0 < len(living) == expected.sum() < len(cells)
    middles, frames = living.positions(STILL, time)
    np.testing.assert_allclose(middles[:, 0], living.x + 10.0 * (time - living.when), atol=1e-3)
    np.testing.assert_allclose(middles[:, 1], living.y, atol=1e-3)
    # Radii are at most those at maturity.
    lengths = 1 / np.linalg.svd(frames, compute_uv=False)
    assert (lengths[:, 0] <= living.across + 1e-6).all()
    assert (lengths[:, 1] <= living.along + 1e-6).all()
    assert (lengths[:, 1] >= 0.5 * living.along).all()


def test_a_life_has_its_stages():
    storms = draw_systems(0, 24.0, 56.0)
    assert np.corrcoef(storms.shields.along, storms.shields.life)[0, 1] > 0.9
    for k in range(len(storms.shields)):
        mine = storms.cores[storms.cores.when == storms.shields.when[k]]
        assert 4 <= len(mine) <= 12
        born, dead = storms.shields.birth[k], storms.shields.birth[k] + storms.shields.life[k]
        assert mine.birth.mean() < born + 0.3 * storms.shields.life[k]
        assert (mine.birth + mine.life).max() < dead


def test_radars_look_in_turn_and_differ():
    days = Days(2, 1.0, 10, 32, 6000.0, seed=4, organised=True, radars=2)
    first, second = (np.stack(list(days.frames(day))) for day in (0, 1))
    assert np.isnan(first).sum() != np.isnan(second).sum()
    alone = Days(1, 1.0, 10, 32, 6000.0, seed=4, organised=True)
    one = np.stack(list(alone.frames(0)))
    both = (one > 1) & (first > 1)
    assert both.any()
    gain = 10 * np.log10(first[both] / one[both])
    assert 0.1 < abs(gain.mean()) < 1.6


AXIS = np.arange(-5, 6, dtype=np.float32)
LOW, HIGH = np.array([-1.5, 2.5]), np.array([0.5, 4.5])


def test_windows_of_a_grid_and_of_its_points_are_the_same():
    axes = Points(AXIS[None, :], AXIS[:, None])
    scattered = Points(*np.meshgrid(AXIS, AXIS))
    assert axes.shape == scattered.shape == (11, 11)
    marks = []
    for points in (axes, scattered):
        window = points.within(LOW, HIGH)
        assert window is not None
        part, x, y = window
        mark = np.zeros(points.shape)
        mark[part] = 100 * x + y
        marks.append(mark)
    np.testing.assert_array_equal(*marks)
    assert sorted(marks[0][marks[0] != 0]) == [-97, -96, 3, 4]


def test_no_window_outside():
    for points in (Points(AXIS[None, :], AXIS[:, None]), Points(*np.meshgrid(AXIS, AXIS))):
        assert points.within(LOW + 20, HIGH + 20) is None


FLOW = Flow((12.0, -5.0), (2.0, 1.0), 40_000.0, 1.0, ((5e-6, 2e-5), (-1e-5, -5e-6)))
X, Y = (axis.astype(np.float32).ravel() for axis in np.mgrid[-100e3:100e3:2e3, -100e3:100e3:2e3])


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


@pytest.mark.parametrize("time", [0.0, 1234.0, 40_000.0])
def test_mean_and_variance(time):
    noise = Texture(5).sample(FLOW, time, X, Y)
    assert noise.dtype == np.float32
    assert noise.mean() == pytest.approx(0.0, abs=0.3)
    assert noise.std() == pytest.approx(1.0, abs=0.2)


def test_near_points_are_alike_and_far_ones_are_not():
    noise = Texture(5).sample(FLOW, 500.0, X, Y)
    near = Texture(5).sample(FLOW, 500.0, X + np.float32(2e3), Y)
    far = Texture(5).sample(FLOW, 500.0, X + np.float32(60e3), Y)
    assert correlation(noise, near) > 0.8
    assert abs(correlation(noise, far)) < 0.35


def test_texture_moves_with_the_flow_and_is_renewed():
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
    # At a fixed point the texture soon changes.
    assert correlation(before, texture.sample(FLOW, start + 1200.0, X, Y)) < 0.5
