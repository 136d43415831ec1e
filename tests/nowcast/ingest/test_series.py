"""The files of one radar agree on site, grid and step."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.ingest.report import IngestReport
from nowcast.ingest.series import of_one_radar, target_grid, typical
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.header import Format, Header
from nowcast.radar.site import Site
from nowcast.rain.grid import Grid

HERE, THERE = Site(51.0, 5.0, 100.0), Site(21.0, 5.0, 100.0)


def header(name: str, station: str = "06475", site: Site | None = HERE) -> Header:
    return Header(name, Format.ODIM, station, (np.datetime64("2020-01-01", "s"),), site)


def test_the_site_is_that_of_most_files_of_which_one_knows():
    files = [header("a", site=None), header("b", site=THERE), header("c"), header("d")]
    assert typical(files).path == "c"
    assert typical(files[:2]).path == "b"
    assert typical(files[:1]).path == "a"
    with pytest.raises(DataError, match="give it with --site"):
        target_grid(files[0], IngestSettings())
    grid = target_grid(typical(files), IngestSettings.of(size=8))
    assert grid.matches(Grid.around(51.0, 5.0, size=(8, 8), spacing=1000.0))


def test_few_files_of_another_radar_are_failures_and_many_are_refused():
    files = [header(str(number)) for number in range(18)] + [header("x", "1"), header("y", "2")]
    report = IngestReport("rain.zarr")
    assert of_one_radar(files, report) == files[:18]
    assert [name for name, _ in report.failed] == ["x", "y"]
    with pytest.raises(DataError, match=r"found 3: 2 .ODIM_H5, y., 1 .ODIM_H5, x"):
        of_one_radar(files[1:], report)
