"""Tests of organised systems: cores first, then stratiform rain, and larger ones live longer."""

from __future__ import annotations

import numpy as np

from nowcast.simulate.archive import Days
from nowcast.simulate.systems import draw_systems


def test_a_life_has_its_stages() -> None:
    storms = draw_systems(0, 24.0, 56.0)
    assert np.corrcoef(storms.shields.along, storms.shields.life)[0, 1] > 0.9
    for k in range(len(storms.shields)):
        mine = storms.cores[storms.cores.when == storms.shields.when[k]]
        assert 4 <= len(mine) <= 12
        born, dead = storms.shields.birth[k], storms.shields.birth[k] + storms.shields.life[k]
        assert mine.birth.mean() < born + 0.3 * storms.shields.life[k]
        assert (mine.birth + mine.life).max() < dead


def test_radars_look_in_turn_each_its_own_way() -> None:
    days = Days(2, 1.0, 10, 32, 6000.0, seed=4, organised=True, radars=2)
    first, second = (np.stack(list(days.frames(day))) for day in (0, 1))
    assert np.isnan(first).sum() != np.isnan(second).sum()
    alone = Days(1, 1.0, 10, 32, 6000.0, seed=4, organised=True)
    one = np.stack(list(alone.frames(0)))
    both = (one > 1) & (first > 1)
    assert both.any()
    gain = 10 * np.log10(first[both] / one[both])
    assert 0.1 < abs(gain.mean()) < 1.6
