"""Rainbow 5: time and site from the XML header, raw 0 as no echo."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from nowcast.radar.site import Site
from nowcast.radar.volume import read_sweeps

NAME = "2013051000000600dBZ.vol"


@pytest.mark.slow
def test_header_and_sweep(polar):
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
