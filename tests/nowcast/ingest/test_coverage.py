"""Shares of missing, dry and wet."""

from __future__ import annotations

import numpy as np

from nowcast.ingest.coverage import Coverage


def test_cells_are_counted_where_the_radar_reaches():
    rain = np.array([[np.nan, np.nan, 0.0], [0.05, 0.1, 7.0]], np.float32)
    assert Coverage.of(rain) == Coverage(2, 2, 2)
    reached = np.array([[False, True, True], [True, True, True]])
    assert Coverage.of(rain, reached) == Coverage(1, 2, 2)


def test_they_add_up_and_read_as_per_cent():
    total = Coverage(1, 2, 1) + Coverage(0, 4, 0)
    assert total.shares() == (12.5, 75.0, 12.5)
    assert str(total) == "12.5 % missing, 75.0 % dry, 12.5 % wet (0.1 mm/h and more)"
    assert Coverage().shares() == (0.0, 0.0, 0.0)
