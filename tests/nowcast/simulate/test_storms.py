"""Tests of storms: their lives and where they are."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from nowcast.simulate.flow import Flow
from nowcast.simulate.storms import LONGEST, REACH, SHORTEST, Storms

STILL = Flow((10.0, 0.0), (0.0, 0.0), 3600.0, 0.0, ((0.0, 0.0), (0.0, 0.0)))


def test_storms_are_born_in_every_hour_and_die() -> None:
    storms = Storms.draw(0, 24.0, 56.0)
    hours = np.histogram(storms.shields.birth, np.arange(0, 23) * 3600.0)[0]
    assert hours.min() >= 1
    assert hours.max() <= 6
    assert storms.shields.life.min() >= SHORTEST
    assert storms.shields.life.max() <= LONGEST
    assert np.hypot(storms.shields.x, storms.shields.y).max() <= REACH
    assert 4 * len(storms.shields) <= len(storms.cores) <= 12 * len(storms.shields)


def test_a_core_lives_within_a_shield() -> None:
    storms = Storms.draw(1, 6.0, 56.0)
    first, last = storms.shields.birth, storms.shields.birth + storms.shields.life
    for k in range(len(storms.cores)):
        parent = np.flatnonzero(storms.shields.when == storms.cores.when[k])
        assert parent.size == 1
        assert storms.cores.birth[k] >= first[parent] - 1e-6
        assert storms.cores.birth[k] + storms.cores.life[k] <= last[parent] + 1e-6


def test_a_longer_day_begins_with_the_same_storms() -> None:
    short, long = Storms.draw(3, 2.0, 56.0), Storms.draw(3, 24.0, 56.0)
    for name in ("shields", "cores"):
        few, many = getattr(short, name), getattr(long, name)
        assert len(few) < len(many)
        for field in fields(few):
            np.testing.assert_array_equal(
                getattr(few, field.name), getattr(many, field.name)[: len(few)]
            )
    # Storms of the long day that the short one does not have come after its end.
    assert long.shields[np.arange(len(short.shields), len(long.shields))].birth.min() >= 2 * 3600.0


def test_vigour_grows_faster_than_it_fades() -> None:
    cells = Storms.draw(0, 1.0, 24.0).shields[np.array([0])]
    ages = np.linspace(0, 1, 201)
    vigour = np.array([cells.vigour(cells.birth[0] + a * cells.life[0])[0] for a in ages])
    assert vigour[[0, -1]] == pytest.approx(0.0, abs=1e-9)
    assert vigour.max() == pytest.approx(1.0, abs=1e-3)
    assert 0.35 < ages[vigour.argmax()] < 0.45


def test_cells_are_carried_and_alive_only_in_their_lives() -> None:
    cells = Storms.draw(0, 3.0, 56.0).cores
    time = 3600.0
    living = cells.alive(time)
    expected = (cells.birth < time) & (time < cells.birth + cells.life)
    assert 0 < len(living) == expected.sum() < len(cells)
    middles, frames = living.positions(STILL, time)
    np.testing.assert_allclose(middles[:, 0], living.x + 10.0 * (time - living.when), atol=1e-3)
    np.testing.assert_allclose(middles[:, 1], living.y, atol=1e-3)
    # Radii are those of maturity or smaller.
    lengths = 1 / np.linalg.svd(frames, compute_uv=False)
    assert (lengths[:, 0] <= living.across + 1e-6).all()
    assert (lengths[:, 1] <= living.along + 1e-6).all()
    assert (lengths[:, 1] >= 0.5 * living.along).all()
