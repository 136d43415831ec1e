"""A rain store that is open is never read as another one, nor by damaged metadata."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.rain import writer
from nowcast.rain.identity import OneStore
from nowcast.rain.replacing import remove
from nowcast.rain.store import consolidate, open_rain
from tests.nowcast.rain.test_late_frames import frames, new_store


@pytest.mark.slow
def test_another_store_in_its_place_is_told(tmp_path: Path) -> None:
    path = new_store(tmp_path / "rain.zarr", 0, 10, 20)
    with open_rain(path) as opened:
        assert float(opened["rain_rate"][1].max()) == 10
        sent = pickle.loads(pickle.dumps(opened))
        path.rename(tmp_path / "old")
        new_store(path, 0, 11, 22)
        for dataset in (opened, sent):
            with pytest.raises(DataError, match=r"store that was opened, of id .* in its place"):
                dataset["rain_rate"][1].max().compute()
    with open_rain(path) as opened:
        assert float(opened["rain_rate"][1].max()) == 11


def test_a_store_that_is_gone_is_no_missing_rain(tmp_path: Path) -> None:
    path = new_store(tmp_path / "rain.zarr", 0, 10)
    with open_rain(path) as opened:
        remove(path)
        with pytest.raises(DataError, match="of id 'none' in its place"):
            opened["rain_rate"].max().compute()


def test_a_store_that_grows_is_the_same(tmp_path: Path) -> None:
    path = new_store(tmp_path / "rain.zarr", 0, 20)
    with open_rain(path) as opened:
        writer.append(path, frames(10, 30))
        np.testing.assert_array_equal(opened["rain_rate"][:, 0, 0], [0, 20])


@pytest.mark.slow
def test_damaged_metadata_are_never_used(tmp_path: Path) -> None:
    """Any one bit: told, or of the spaces between."""
    path = new_store(tmp_path / "rain.zarr", 0, 10) / "zarr.json"
    whole = path.read_bytes()
    read = 0
    for place in np.random.default_rng(0).choice(len(whole), 300, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 7)
        path.write_bytes(damaged)
        try:
            OneStore(path.parent, read_only=True)._check()
            assert json.loads(damaged) == json.loads(whole)
            read += 1
        except DataError:
            pass
    assert read < 150
    path.write_bytes(whole.replace(b'"units": "mm h-1"', b'"units": "mm/h"', 1))
    with pytest.raises(DataError, match="the file is damaged"):
        open_rain(path.parent)
    consolidate(path.parent)  # from the arrays' own
    open_rain(path.parent).close()
