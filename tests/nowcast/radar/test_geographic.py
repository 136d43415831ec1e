"""Grids in degrees as grids in metres."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.radar.geographic import geographic_grid


def test_cells_lie_at_their_degrees():
    grid = geographic_grid(-129.995, 20.005, 0.01, 0.02, 70, 35)
    latitude, longitude = grid.latitude_longitude()
    np.testing.assert_allclose(latitude[:, 0], 20.005 + 0.02 * np.arange(35), atol=1e-9)
    np.testing.assert_allclose(longitude[0], -129.995 + 0.01 * np.arange(70), atol=1e-9)


def test_the_scale_is_true_in_the_middle():
    grid = geographic_grid(-10.0, 59.5, 1.0, 1.0, 21, 2)
    assert grid.dy == pytest.approx(111_195, rel=1e-4)
    assert grid.dx == pytest.approx(111_195 / 2, rel=1e-4)
