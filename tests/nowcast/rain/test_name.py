"""Tests of the name by which a model remembers a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nowcast.rain.name import name_of
from nowcast.rain.store import open_rain, write_zarr
from tests.nowcast.stores import moving_rain


def test_stores_of_one_title_differ_by_grid_time_and_rain() -> None:
    other = moving_rain()
    other["rain_rate"][0, 9, 9] += 1
    later = moving_rain(10 * np.arange(24) + 60)
    made = [moving_rain(), other, later, moving_rain(latitude=51.0), moving_rain(spacing=500.0)]
    assert len({name_of(store) for store in made}) == len(made)


def test_a_store_that_grows_or_is_written_anew_keeps_its_name(tmp_path: Path) -> None:
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    with open_rain(tmp_path / "rain.zarr") as store:
        name = name_of(store)
    assert name.startswith("moving patches [")
    assert name == name_of(moving_rain(10 * np.arange(40)))
