"""Sigmet/IRIS: header and the codes of its data types."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from nowcast.radar import iris
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from nowcast.radar.volume import read_sweeps


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
