"""The report of an ingest."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import SettingsError
from nowcast.ingest.gridding import Coverage
from nowcast.ingest.mlcast import Origin, write_mlcast
from nowcast.ingest.rain_map import Failure
from nowcast.ingest.report import GRID, IngestReport
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.header import Site
from nowcast.radar.plainfile import WHOLE
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.grid import Grid
from nowcast.rain.rainrate import ZRRelation
from nowcast.rain.store import open_rain, write_zarr
from tests.nowcast.stores import rain_of


def test_failures_are_logged_and_counted(caplog):
    report = IngestReport("rain.zarr")
    report.fail(Failure("a.h5", "truncated"))
    report.fail(Failure("b.h5", "our mistake", ours=True))
    assert report.failed == [("a.h5", "truncated"), ("b.h5", "our mistake")]
    assert report.mistakes == 1
    assert "a.h5: skipped: truncated" in caplog.text


def test_only_copies_are_named_by_their_addresses():
    report = IngestReport("rain.zarr")
    report.addresses = {
        "/tmp/c/1": "s3://b/1",
        "/tmp/c/10": "s3://b/10",
        "/tmp/c/1.h5": "s3://b/1.h5",
    }
    report.fail(
        Failure("/tmp/c/10, /tmp/c/1.h5", "/tmp/c/1.h5: damaged; /tmp/c/12 and /tmp/c/1 are not.")
    )
    report.fail(Failure("/tmp/c/1.h5", f"/tmp/c/1.h5: the file is empty; {WHOLE}"))
    assert report.failed == [
        ("s3://b/10, s3://b/1.h5", "s3://b/1.h5: damaged; /tmp/c/12 and s3://b/1 are not."),
        (
            "s3://b/1.h5",
            "s3://b/1.h5: the file is empty; wait for a whole one at this address, or leave it out",
        ),
    ]


@pytest.mark.parametrize(("missing", "warned"), [(50, False), (51, True), (0, False)])
def test_more_than_half_missing_is_a_warning(caplog, missing, warned):
    IngestReport("rain.zarr", coverage=Coverage(missing, 100 - missing, 0)).warn_of_missing()
    assert ("rain.zarr: 51 % of the radar's range is missing" in caplog.text) == warned


def test_missing_cells_of_a_composite_are_explained(caplog):
    IngestReport("a.zarr", coverage=Coverage(9, 1, 0), area=GRID).warn_of_missing()
    assert "90 % of the composite's grid is missing" in caplog.text
    assert "outside of all radars' range" in caplog.text
    assert "--fill 'no echo'" in caplog.text


def test_cells_are_counted_where_the_radar_reaches():
    rain = np.array([[np.nan, np.nan, 0.0], [0.05, 0.1, 7.0]], np.float32)
    assert Coverage.of(rain) == Coverage(2, 2, 2)
    reached = np.array([[False, True, True], [True, True, True]])
    assert Coverage.of(rain, reached) == Coverage(1, 2, 2)


def test_coverages_add_up_and_print_as_per_cent():
    total = Coverage(1, 2, 1) + Coverage(0, 4, 0)
    assert total.shares() == (12.5, 75.0, 12.5)
    assert str(total) == "12.5 % missing, 75.0 % dry, 12.5 % wet (0.1 mm/h and more)"
    assert Coverage().shares() == (0.0, 0.0, 0.0)


def test_settings_are_read_from_text():
    settings = IngestSettings.of(
        size="200x300", site="50.9,6.4,116", centre="51,5", zr="250,1.2", step="5min"
    )
    assert settings.size == (200, 300)
    assert settings.site == Site(50.9, 6.4, 116.0)
    assert settings.centre == (51.0, 5.0)
    assert settings.step == np.timedelta64(5, "m")
    assert (settings.relation.a, settings.relation.hail_cap) == (250.0, 53.0)
    assert IngestSettings.of(size=128).size == (128, 128)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", "big"),
        ("size", 0),
        ("size", 99999),
        ("noise", float("nan")),
        ("site", "50,5,nan"),
        ("spacing", -1.0),
        ("site", "50.9"),
        ("site", "95,5"),
        ("centre", "here"),
        ("zr", "mp"),
        ("step", "5h"),
        ("rhohv", 2.0),
        ("clean", "spikes,spekle"),
        ("combine", "mean"),
        ("sweeps", 0),
        ("colour", "red"),
    ],
)
def test_other_values_are_refused_by_name(name, value):
    with pytest.raises(SettingsError, match=f"ingest, {name}: .*found") as error:
        IngestSettings.of(**{name: value})
    assert str(error.value).count("found") == 1


def test_equal_settings_describe_themselves_equally():
    first, second = IngestSettings(), IngestSettings.of(zr="marshall-palmer", clean="default")
    assert first.describe(polar=True) == second.describe(polar=True)
    assert first.describe(polar=True) != IngestSettings.of(rhohv=0.8).describe(polar=True)
    assert set(first.describe(polar=False)) == {"zr_relation"}


ORIGIN = {
    "identifier": "NL-knmi-rain_rate",
    "created_by": "A Person <person@example.org>",
    "created_with": "https://github.com/mlcast-community/mlcast-dataset-knmi-test@v0.1.0",
    "license": "CC-BY-4.0",
}


@pytest.fixture
def store(tmp_path):
    """Six frames every ten minutes without the fourth."""
    rain = np.random.default_rng(0).gamma(0.2, 2.0, (5, 256, 256)).astype(np.float32)
    rain[:, :3, :3] = np.nan
    grid = Grid.around(52.0, 5.0, size=(256, 256), spacing=1000.0)
    dataset = rain_of(rain, [0, 10, 20, 40, 50], grid, station="test")
    write_zarr(dataset, tmp_path / "rain.zarr")
    return tmp_path / "rain.zarr"


@pytest.mark.slow
def test_numbers_and_times_come_from_the_store(store, tmp_path):
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
        rain = read_rain(header, 3, ZRRelation())
        np.testing.assert_array_equal(rain, before["rain_rate"].values[3])


def test_the_validator_finds_no_fault_but_the_length(store, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip(
            "mlcast_dataset_validator.specs.source_data.radar_precipitation"
        )
        metadata = sys.modules["mlcast_dataset_validator.checks.global_attributes.mlcast_metadata"]
        # This check asks the network.
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
def test_settings_against_the_convention_are_refused(change, sentence):
    with pytest.raises(SettingsError, match=sentence):
        Origin.of(**(ORIGIN | change))
