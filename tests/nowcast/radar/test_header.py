"""Formats know whether they are polar, and headers travel between processes."""

from __future__ import annotations

import pickle

import pytest

from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from tests.nowcast.radar.odim_file import write_sweep


@pytest.mark.parametrize("format", Format)
def test_formats_know_whether_they_are_polar(format):
    grids = {"KNMI", "CF", "FMI", "RADOLAN", "GRIB2", "GeoTIFF"}
    on_grid = format.value.split()[0] in grids or format.value.endswith("composite")
    assert format.polar == (not on_grid)


def test_headers_pickle(tmp_path):
    header = read_header(write_sweep(tmp_path / "a.h5"))
    assert pickle.loads(pickle.dumps(header)) == header
