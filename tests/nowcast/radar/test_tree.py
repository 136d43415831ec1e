"""No file that xradar opened stays open."""

from __future__ import annotations

import os

import pytest

from nowcast.radar.formats import recognise
from nowcast.radar.volume import read_sweeps


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "2013051000000600dBZ.vol",
        "T_PAGZ35_C_ENMI_20170421090837.hdf",
        "SUR210819000227.RAWKPJV",
    ],
)
def test_no_file_stays_open(polar, name):
    path = polar / name
    read_sweeps([path], recognise(path))
    names = []
    for number in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    assert not any(path.name in name for name in names)
