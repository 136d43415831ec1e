"""Tests of windows among points."""

from __future__ import annotations

import numpy as np

from nowcast.simulate.points import Points

AXIS = np.arange(-5, 6, dtype=np.float32)
LOW, HIGH = np.array([-1.5, 2.5]), np.array([0.5, 4.5])


def test_windows_of_a_grid_and_of_its_points_are_the_same() -> None:
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


def test_no_window_outside() -> None:
    for points in (Points(AXIS[None, :], AXIS[:, None]), Points(*np.meshgrid(AXIS, AXIS))):
        assert points.within(LOW + 20, HIGH + 20) is None
