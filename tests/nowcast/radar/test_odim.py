"""ODIM_H5: headers, order of sweeps, undetect and nodata."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from nowcast.radar.site import Site
from nowcast.radar.volume import read_sweeps
from tests.nowcast.radar.odim_file import write_sweep


def test_header_of_a_volume_is_its_first_sweep_in_time(helchteren):
    header = read_header(helchteren[1])
    assert header.times == (np.datetime64("2020-02-07T13:05:04"),)
    assert header.station == "06475"
    assert header.site == Site(51.069072, 5.4064, 140.0)
    assert not header.single_sweep


def test_header_of_a_single_sweep(polar):
    header = read_header(polar / "T_PAZE63_C_LFPW_20230420065446.h5")
    assert header.single_sweep
    assert header.times == (np.datetime64("2023-04-20T06:53:44"),)


def test_the_lowest_sweep_is_read_wherever_it_stands(tmp_path):
    path = write_sweep(tmp_path / "a.h5", elevations=(9.0, 4.0, 0.5, 2.0, 90.0))
    (sweep,) = read_sweeps([path], Format.ODIM)
    assert sweep.elevation == 0.5
    assert np.nanmax(sweep.dbz) == 32.0
    low = read_sweeps([path], Format.ODIM, cuts=3)
    assert [sweep.elevation for sweep in low] == [0.5, 2.0, 4.0]


def test_undetect_is_no_echo_and_nodata_is_missing(tmp_path):
    (sweep,) = read_sweeps([write_sweep(tmp_path / "a.h5")], Format.ODIM)
    assert np.isnan(sweep.dbz[40, 30])
    assert np.isnan(sweep.dbz).sum() == 1
    assert np.isneginf(sweep.dbz).sum() == sweep.dbz.size - 100 - 1
    assert (sweep.dbz[10:20, 10:20] == 30.0).all()


@pytest.mark.parametrize("number", [0, 7])
def test_helchteren_has_no_number_for_no_echo(helchteren, number):
    (sweep,) = read_sweeps([helchteren[number]], Format.ODIM)
    echo = sweep.dbz[np.isfinite(sweep.dbz)]
    assert sweep.dbz.shape == (360, 800)
    assert echo.min() > -32
    assert 0.5 < np.isneginf(sweep.dbz).mean() < 0.9
    assert not np.isnan(sweep.dbz).any()
