"""Composites: packed ones, and damage after the header."""

from __future__ import annotations

import gzip

import h5py
import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar import composite
from nowcast.radar.reader import read_header
from nowcast.rain.rainrate import ZRRelation

NAME = "knmi/2010/08/RAD_NL25_RAP_5min_201008260300.h5"


def test_a_packed_composite_reads_like_the_plain_one(radar_dir, tmp_path):
    path = tmp_path / "packed"
    path.write_bytes(gzip.compress((radar_dir / NAME).read_bytes(), 1))
    packed, plain = (
        composite.read_rain(read_header(file), 0, ZRRelation()) for file in (path, radar_dir / NAME)
    )
    np.testing.assert_array_equal(packed, plain)


def test_an_image_of_another_size_is_an_error(radar_dir, tmp_path):
    path = tmp_path / "a.h5"
    path.write_bytes((radar_dir / NAME).read_bytes())
    header = read_header(path)
    with h5py.File(path, "r+") as file:
        del file["image1/image_data"]
        file["image1/image_data"] = np.zeros((3, 4), np.uint16)
    with pytest.raises(DataError, match=r"a\.h5: expected an image of \(765, 700\) cells"):
        composite.read_rain(header, 0, ZRRelation())


def test_an_image_that_is_gone_is_an_error(radar_dir, tmp_path):
    path = tmp_path / "a.h5"
    path.write_bytes((radar_dir / NAME).read_bytes())
    header = read_header(path)
    with h5py.File(path, "r+") as file:
        del file["image1/image_data"]
    with pytest.raises(DataError, match=r"a\.h5: damaged or truncated KNMI HDF5 file \(KeyError"):
        composite.read_rain(header, 0, ZRRelation())
