"""The report of an ingest."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.ingest.coverage import Coverage
from nowcast.ingest.rain_map import Failure
from nowcast.ingest.report import GRID, IngestReport


def test_failures_are_logged_and_counted(caplog):
    report = IngestReport("rain.zarr")
    report.fail(Failure("a.h5", "truncated"))
    report.fail(Failure("b.h5", "our mistake", ours=True))
    assert report.failed == [("a.h5", "truncated"), ("b.h5", "our mistake")]
    assert report.mistakes == 1
    assert "a.h5: skipped: truncated" in caplog.text


@pytest.mark.parametrize(("missing", "warned"), [(50, False), (51, True), (0, False)])
def test_more_than_half_missing_is_a_warning(caplog, missing, warned):
    IngestReport("rain.zarr", coverage=Coverage(missing, 100 - missing, 0)).warn_of_missing()
    assert ("rain.zarr: 51 % of the radar's range is missing" in caplog.text) == warned


def test_of_a_composite_what_lies_outside_is_explained(caplog):
    IngestReport("a.zarr", coverage=Coverage(9, 1, 0), area=GRID).warn_of_missing()
    assert "90 % of the composite's grid is missing" in caplog.text
    assert "outside of all radars' range" in caplog.text
    assert "--fill" not in caplog.text


def test_why_there_is_nothing():
    report = IngestReport("rain.zarr", ignored=2)
    assert "found none (2 other files)" in str(report.nothing_read())
    report.failed.append(("a.h5", "truncated"))
    assert str(report.nothing_read()) == "a.h5: truncated"
    report.failed.append(("b.h5", "empty"))
    assert "none of 2 files could be read; the first is a.h5: truncated" in str(
        report.nothing_read()
    )


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
