"""Sigmet/IRIS: header and the codes of its data types."""

from __future__ import annotations

import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.radar.header import Format
from nowcast.radar.polar import iris
from nowcast.radar.reader import read_header, read_sweeps


@pytest.mark.parametrize(("none", "outside"), [(-32.0, 95.5), (-327.68, 327.67)])
def test_codes_of_one_and_two_bytes(none, outside):
    moment = xr.DataArray([[none, outside, 10.0, -31.5]], name="DBZH")
    dry, missing = iris.classify(moment)
    assert dry.tolist() == [[True, False, False, False]]
    assert missing.tolist() == [[False, True, False, False]]


def test_west_is_negative():
    assert iris._signed(350.0) == -10.0
    assert iris._signed(25.5) == 25.5


NAME = "2013051000000600dBZ.vol"


def test_a_volume_cut_in_its_first_blobs_is_an_error(polar, tmp_path):
    content = (polar / NAME).read_bytes()
    path = tmp_path / "cut.vol"
    path.write_bytes(content[: content.find(b"<BLOB") + 500])
    assert read_header(path).station == "143DEX"
    with pytest.raises(DataError, match=r"cut\.vol: damaged or truncated Rainbow 5 file"):
        read_sweeps([path], Format.RAINBOW)


def test_a_header_without_time_is_an_error(tmp_path):
    path = tmp_path / "a.vol"
    path.write_bytes(b'<volume version="5">\n<scan name="x" date="y">\n</volume>\n<!-- END XML -->')
    with pytest.raises(DataError, match=r"a\.vol: expected the scan's date and time"):
        read_header(path)
