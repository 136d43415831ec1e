"""Stores in mlcast's convention: its own validator finds no fault but their length."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import SettingsError
from nowcast.ingest.mlcast import Origin, write_mlcast
from nowcast.radar import composite
from nowcast.radar.reader import read_header
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.rainrate import ZRRelation
from nowcast.rain.store import open_rain, write_zarr

ORIGIN = {
    "identifier": "NL-knmi-rain_rate",
    "created_by": "A Person <person@example.org>",
    "created_with": "https://github.com/mlcast-community/mlcast-dataset-knmi-test@v0.1.0",
    "license": "CC-BY-4.0",
}


@pytest.fixture
def store(tmp_path):
    """Six frames of ten minutes each, of which the fourth is missing."""
    rain = np.random.default_rng(0).gamma(0.2, 2.0, (5, 256, 256)).astype(np.float32)
    rain[:, :3, :3] = np.nan
    minutes = np.array([0, 10, 20, 40, 50]) * np.timedelta64(1, "m")
    dataset = rain_dataset(
        Grid.around(52.0, 5.0, size=(256, 256), spacing=1000.0),
        np.datetime64("2020-06-01T00:00", "ns") + minutes,
        rain,
        attributes={},
        global_attributes={"title": "test", "source": "weather radar, test", "station": "test"},
    )
    write_zarr(dataset, tmp_path / "rain.zarr")
    return tmp_path / "rain.zarr"


@pytest.mark.slow
def test_numbers_and_times_are_those_of_the_store(store, tmp_path):
    missing = write_mlcast(store, tmp_path / "out.zarr", Origin.of(**ORIGIN))
    assert missing.astype("datetime64[m]").astype(str).tolist() == ["2020-06-01T00:30"]
    with open_rain(store) as before, xr.open_zarr(tmp_path / "out.zarr") as after:
        np.testing.assert_array_equal(after["rain_rate"].values, before["rain_rate"].values)
        assert after["rain_rate"].attrs["standard_name"] == "rainfall_flux"
        assert after["rain_rate"].chunks[0] == (1,) * 5
        assert after["missing_times"].values.tolist() == missing.astype("M8[ns]").tolist()


@pytest.mark.slow
def test_it_is_read_back_as_a_source(store, tmp_path):
    write_mlcast(store, tmp_path / "out.zarr", Origin.of(**ORIGIN))
    header = read_header(tmp_path / "out.zarr")
    assert len(header.times) == 5
    with open_rain(store) as before:
        assert header.grid.matches(Grid.from_dataset(before))
        rain = composite.read_rain(header, 3, ZRRelation())
        np.testing.assert_array_equal(rain, before["rain_rate"].values[3])


def test_the_validator_finds_no_fault_but_the_length(store, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(
            "mlcast_dataset_validator.specs.source_data.radar_precipitation"
        )
        metadata = sys.modules["mlcast_dataset_validator.checks.global_attributes.mlcast_metadata"]
        # The one check that asks the network.
        monkeypatch.setattr(metadata, "github_repo_exists", lambda org, repo: False)
        write_mlcast(store, tmp_path / "out.zarr", Origin.of(**ORIGIN))
        with xr.open_zarr(tmp_path / "out.zarr") as dataset:
            report, _ = module.validate_dataset(dataset)
    failed = [result.requirement for result in report.results if result.status == "FAIL"]
    assert failed == ["Minimum 3-year coverage"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"identifier": "knmi"}, "mlcast, identifier: expected COUNTRY-INSTITUTION-QUANTITY"),
        ({"created_by": "me"}, "mlcast, created_by: expected 'Name <name@example.org>'"),
        ({"created_with": "nowcast"}, "mlcast, created_with: expected https://github.com"),
        ({"licence": "CC0"}, "mlcast, licence"),
    ],
)
def test_what_the_convention_would_refuse_is_refused_first(change, sentence):
    with pytest.raises(SettingsError, match=sentence):
        Origin.of(**(ORIGIN | change))
