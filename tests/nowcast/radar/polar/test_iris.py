"""Sigmet/IRIS: header and the codes of its data types."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.radar.header import Format, Site
from nowcast.radar.polar import iris
from nowcast.radar.reader import read_header, read_sweeps


@pytest.mark.slow
def test_header_and_sweep(polar):
    path = polar / "SUR210819000227.RAWKPJV"
    header = read_header(path)
    assert header.station == "Surgavere, Radar"
    assert header.site.altitude == 157
    assert str(header.times[0]) == "2021-08-19T00:02:27.432"
    (sweep,) = read_sweeps([path], Format.IRIS)
    assert sweep.dbz.shape == (359, 833)
    assert np.nanmax(sweep.dbz) == pytest.approx(46.18)
    assert sweep.dbz[np.isfinite(sweep.dbz)].min() > -32
    assert sweep.rhohv is not None


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


@pytest.mark.slow
def test_header_and_sweep_of_rainbow(polar):
    header = read_header(polar / NAME)
    assert header.times == (np.datetime64("2013-05-10T00:00:06"),)
    assert header.site == Site(50.856633, 6.379967, 116.7)
    (sweep,) = read_sweeps([polar / NAME], Format.RAINBOW)
    assert sweep.dbz.shape == (361, 400)
    assert (sweep.elevation, np.nanmax(sweep.dbz)) == (0.6, 48.0)
    assert sweep.dbz[np.isfinite(sweep.dbz)].min() == -31.5


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
