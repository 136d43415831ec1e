"""FMI composites: grey levels, projection and time from the comments."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar.maps import fmi
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.rainrate import ZRRelation

NAME = "fmi/20160928/201609281800_fmi.radar.composite.lowest_FIN_SUOMI1.pgm.gz"


def test_grey_is_reflectivity_from_south_to_north(radar_dir):
    header = read_header(radar_dir / NAME)
    assert header.times == (np.datetime64("2016-09-28T18:00:00"),)
    content = gzip.decompress((radar_dir / NAME).read_bytes())
    grey = np.frombuffer(content[-760 * 1226 :], np.uint8).reshape(1226, 760)[::-1]
    dbz = fmi.read_values(radar_dir / NAME, header, 0)
    assert (np.isnan(dbz) == (grey == 255)).all()
    assert (np.isneginf(dbz) == (grey == 0)).all()
    assert np.nanmax(dbz) == (178 - 64) / 2
    rain = read_rain(header, 0, ZRRelation(hail_cap=None))
    place = np.unravel_index(np.nanargmax(np.where(grey == 255, 0, grey)), grey.shape)
    assert rain[place] == np.nanmax(rain) == pytest.approx((10**5.7 / 200) ** (1 / 1.6), rel=1e-5)
    assert (rain[(grey > 0) & (grey < 78)] == 0).all()


def test_too_few_pixels_are_an_error(radar_dir, tmp_path):
    content = gzip.decompress((radar_dir / NAME).read_bytes())
    path = tmp_path / "cut.pgm"
    path.write_bytes(content[:-1000])
    header = read_header(path)
    with pytest.raises(DataError, match=r"cut\.pgm: expected 931760 pixels, found 930760"):
        read_rain(header, 0, ZRRelation())


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b"obstime 2016", b"obstime 16", "expected a date YYYYMMDD and a time"),
        (b"type stereographic", b"type mercator", "found 'mercator'"),
        (b"# truelatitude 60\n", b"", "complete projection .*truelatitude"),
        (b"param CorrectedReflectivity", b"param RadialVelocity", "found the parameter 'RadialVel"),
        (b"metersperpixel_x 999", b"metersperpixel_x 499", "cells between the corners"),
        (b"topright 34.903", b"topright 31.903", "cells between the corners"),
        (b"\n255\n", b"\n127\n", "expected 255 grey levels, found 127"),
    ],
)
def test_an_unknown_header_is_refused(radar_dir, tmp_path, old, new, sentence):
    content = gzip.decompress((radar_dir / NAME).read_bytes())
    path = tmp_path / "a.pgm"
    path.write_bytes(content.replace(old, new, 1))
    with pytest.raises(DataError, match=rf"a\.pgm: .*{sentence}"):
        read_header(path)
