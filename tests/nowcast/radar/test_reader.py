"""The one door: headers of any format, checked for a time."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar import reader, volume
from tests.nowcast.radar.odim_file import write_sweep


@pytest.mark.parametrize("times", [(), (np.datetime64("NaT"),)])
def test_a_header_without_a_time_is_an_error(tmp_path, monkeypatch, times):
    path = write_sweep(tmp_path / "a.h5")
    header = reader.read_header(path)
    monkeypatch.setattr(volume, "read_header", lambda *_: dataclasses.replace(header, times=times))
    with pytest.raises(DataError, match=r"a\.h5: expected a time in the ODIM_H5 file"):
        reader.read_header(path)


def test_a_volume_without_sweeps_is_an_error(tmp_path):
    path = write_sweep(tmp_path / "a.h5", elevations=())
    with pytest.raises(DataError, match=r"a\.h5: expected at least one dataset with a start time"):
        reader.read_header(path)
