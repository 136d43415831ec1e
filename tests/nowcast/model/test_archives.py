"""Several stores to train on: one step and spacing, whole or cut into parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.model.archives import (
    Archive,
    common_step_and_spacing,
    split_archives,
    training_windows,
)
from nowcast.model.settings import TrainSettings
from nowcast.model.split import Split
from nowcast.rain.store import write_zarr
from tests.nowcast.stores import moving_rain

SETTINGS = TrainSettings(n_in=2, lead_minutes=30, tile=16, tile_stride=16, shards=4, wet_fraction=0)
TEN = np.timedelta64(10, "m")


def stores(folder: Path, **made: xr.Dataset) -> list[Path]:
    for name, dataset in made.items():
        write_zarr(dataset.assign_attrs(title=name), folder / f"{name}.zarr")
    return [folder / f"{name}.zarr" for name in made]


def opened(paths: list[Path], spacing: float = 1000.0) -> list[Archive]:
    return [Archive.open(path, TEN, spacing) for path in paths]


def names(split: Split) -> list[list[str]]:
    return [
        [s.store.split(" [")[0] for s in part]
        for part in (split.train, split.validation, split.test)
    ]


@pytest.mark.slow
def test_the_longest_step_and_the_first_grid_are_common(tmp_path):
    fast = moving_rain(5 * np.arange(24))
    paths = stores(tmp_path, fast=fast, slow=moving_rain(), fine=moving_rain(spacing=500.0))
    assert common_step_and_spacing(paths, SETTINGS) == (TEN, 1000.0)
    assert common_step_and_spacing(paths[::-1], SETTINGS) == (TEN, 500.0)
    chosen = SETTINGS.model_copy(update={"step_minutes": 20.0, "spacing_km": 2.0})
    assert common_step_and_spacing(paths, chosen) == (np.timedelta64(20, "m"), 2000.0)


def test_a_store_that_fits_is_read_by_its_name_and_others_as_they_are_brought(tmp_path):
    plain, fine = opened(stores(tmp_path, plain=moving_rain(), fine=moving_rain(spacing=500.0)))
    assert plain.data == str(tmp_path / "plain.zarr")
    assert isinstance(fine.data, xr.DataArray)
    assert fine.rain.sizes == {"time": 24, "y": 16, "x": 16}


@pytest.mark.slow
def test_named_stores_are_whole_and_others_are_cut(tmp_path):
    made = {name: moving_rain() for name in "abcd"}
    a, b, c, d = opened(stores(tmp_path, **made))
    assert names(split_archives([a, b], [c], [d], SETTINGS, 2)) == [["a", "b"], ["c"], ["d"]]
    assert names(split_archives([a], [], [], SETTINGS, 2)) == [["a"], ["a"], ["a"]]
    some = split_archives([a], [], [d], SETTINGS, 2)
    assert names(some) == [["a", "a"], ["a"], ["d"]]
    assert not {(s.first, s.last) for s in some.train} & {
        (s.first, s.last) for s in some.validation
    }


@pytest.mark.slow
def test_a_store_too_short_to_be_cut_is_trained_on(tmp_path):
    long, short = opened(stores(tmp_path, long=moving_rain(), short=moving_rain(range(0, 120, 10))))
    assert names(split_archives([short, long], [], [], SETTINGS, 2)) == [
        ["short", "long"], ["long"], ["long"],
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"short \[\w+\]: expected at least 3 x 5 frames"):
        split_archives([short], [], [], SETTINGS, 2)


@pytest.mark.slow
def test_of_many_stores_whole_ones_are_kept(tmp_path):
    made = opened(stores(tmp_path, **{name: moving_rain() for name in "abcdefgh"}))
    split = split_archives(made, [], [], SETTINGS, 2)
    assert names(split) == [list("abcde"), ["f"], ["g", "h"]]


@pytest.mark.slow
def test_every_shard_has_windows_of_every_store(tmp_path):
    made = opened(stores(tmp_path, plain=moving_rain(), fine=moving_rain(spacing=500.0)))
    split = split_archives(made, [], [], SETTINGS, 2)
    samples = training_windows(made, split.train, 3, SETTINGS)
    assert samples.partitions == SETTINGS.shards
    alone = [training_windows([one], split.train, 3, SETTINGS) for one in made]
    assert len(samples) == sum(map(len, alone))
    assert samples.lengths == tuple(map(sum, zip(*(one.lengths for one in alone), strict=True)))
    assert samples.head(1)["x"].shape == (1, 2, 16, 16, 1)


@pytest.mark.slow
def test_a_store_without_a_window_is_left_out_and_told(tmp_path):
    dry = moving_rain()
    dry["rain_rate"] = dry["rain_rate"] * 0
    made = opened(stores(tmp_path, wet=moving_rain(), dry=dry))
    settings = SETTINGS.model_copy(update={"wet_fraction": 0.05, "keep_dry": 0.0})
    split = split_archives(made, [], [], settings, 2)
    said: list[str] = []
    assert len(training_windows(made, split.train, 3, settings, said.append))
    assert len(said) == 1
    assert said[0].startswith("left out: ")
    assert "dry.zarr" in said[0]
    with pytest.raises(DataError, match="at least one window"):
        training_windows(made[1:], split.train, 3, settings)
