"""Polar scans: every format's strongest echo is where and what xradar itself has."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import DataError, MissingExtraError
from nowcast.radar import volume
from nowcast.radar.header import Format
from nowcast.radar.volume import read_sweeps
from tests.nowcast.radar.odim_file import write_sweep


def test_moments_in_separate_files_are_joined(helchteren):
    path = helchteren[0]
    other = path.with_name(path.name.replace("dbzh", "rhohv"))
    (joined,) = read_sweeps([other, path], Format.ODIM)
    assert joined.dbz is not None
    assert joined.rhohv is not None
    assert joined.dbz.shape == joined.rhohv.shape
    measured = joined.rhohv[~np.isnan(joined.rhohv)]
    assert 0 <= measured.min() < measured.max() < 1


def test_without_reflectivity_there_is_a_sentence(tmp_path):
    path = write_sweep(tmp_path / "a.h5", quantity="RHOHV")
    with pytest.raises(DataError, match=r"a\.h5: expected a sweep with reflectivity .DBZH."):
        read_sweeps([path], Format.ODIM)


def test_a_moment_can_be_chosen(polar):
    path = polar / "T_PAZE63_C_LFPW_20230420065446.h5"
    corrected, total = (
        read_sweeps([path], Format.ODIM, moment=moment)[0] for moment in ("DBZH", "TH")
    )
    assert not np.array_equal(corrected.dbz, total.dbz, equal_nan=True)
    with pytest.raises(DataError, match=r"expected a sweep with reflectivity .VRAD."):
        read_sweeps([path], Format.ODIM, moment="VRAD")


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setattr(volume, "find_spec", lambda name: None if name == "xradar" else name)
    with pytest.raises(MissingExtraError, match=r"needs xradar; pip install 'daskdl\[nowcast\]'"):
        volume.require_readers()
