"""Simulated scans, and an archive of them."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import SettingsError
from nowcast.cli import app
from nowcast.rain.identity import is_simulated
from nowcast.rain.store import open_rain
from nowcast.simulate import Radar, Weather, simulate
from nowcast.simulate.archive import Days, simulate_archive
from nowcast.simulate.regime import REGIMES, draw_regime
from nowcast.simulate.scans import START


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    return simulate(tmp_path_factory.mktemp("scans"), hours=1, step_minutes=10, seed=1)


@pytest.mark.slow
def test_each_step_has_a_file_marked_as_simulated(scans):
    assert [path.name for path in scans] == [
        f"simulated_20200601{time}.h5" for time in ("0000", "0010", "0020", "0030", "0040", "0050")
    ]
    assert sorted(scans[0].parent.iterdir()) == scans
    for path in scans:
        with h5py.File(path) as file:
            assert file["how"].attrs["simulated"] == b"True"
            assert b"simulated" in file["what"].attrs["source"]
            assert len([name for name in file if name.startswith("dataset")]) == 2


def test_repeating_gives_the_same_files_and_another_seed_others(scans, tmp_path):
    again = simulate(tmp_path, hours=0.5, step_minutes=10, seed=1)
    assert [a.read_bytes() == b.read_bytes() for a, b in zip(again, scans, strict=False)] == [
        True
    ] * 3
    other = simulate(tmp_path, hours=0.2, step_minutes=10, seed=2)
    assert other == again[:1]
    assert other[0].read_bytes() != scans[0].read_bytes()


def test_progress_and_another_radar(tmp_path):
    calls: list[tuple[int, int]] = []
    radar = Radar(rays=90, gates=50, gate_length=1000.0, elevations=(0.7,), blocked=())
    paths = simulate(
        tmp_path / "new",
        hours=0.25,
        step_minutes=5,
        radar=radar,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(1, 3), (2, 3), (3, 3)]
    with h5py.File(paths[0]) as file:
        assert file["dataset1/data1/data"].shape == (90, 50)
        assert file["dataset1/where"].attrs["elangle"] == 0.7


@pytest.mark.parametrize(
    "wrong", [{"hours": 0}, {"hours": -1}, {"step_minutes": 0}, {"seed": -1}, {"hours": 0.1}]
)
def test_numbers_that_make_no_scans_are_refused(wrong, tmp_path):
    with pytest.raises(SettingsError, match="expected hours for one scan") as caught:
        simulate(tmp_path / "scans", **wrong)
    assert f"{next(iter(wrong.values()))}" in str(caught.value)
    assert not (tmp_path / "scans").exists()


def test_ingested_rain_is_the_weather(scans):
    """From weather to files, and back through readers, the Z-R relation and the gridding."""
    from nowcast.ingest.rain_map import map_scan, try_header
    from nowcast.ingest.scan import group_scans
    from nowcast.ingest.settings import IngestSettings
    from nowcast.ingest.sources import target_grid

    settings = IngestSettings.of(size=120, spacing=2000.0)
    grouped, _ = group_scans([try_header(path) for path in scans], settings.step)
    assert [scan.time for scan in grouped] == [
        np.datetime64(START, "s") + np.timedelta64(600 * k, "s") for k in range(6)
    ]
    grid = target_grid(grouped[0].headers[0], settings)
    weather = Weather(1, hours=1)
    for number in (0, 4):
        rain = map_scan(grouped[number], grid, settings).rain
        truth = weather.rain_field(600.0 * number + 10, grid.x[None, :], grid.y[:, None])
        seen = np.isfinite(rain)
        assert 0.7 < seen.mean() < 0.8
        assert np.corrcoef(rain[seen], truth[seen])[0, 1] > 0.97
        assert rain[seen].mean() == pytest.approx(truth[seen].mean(), rel=0.15)
        assert ((rain >= 0.1) == (truth >= 0.1))[seen].mean() > 0.97
        row, column = np.unravel_index(np.where(seen, rain, 0).argmax(), rain.shape)
        near = truth[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
        assert near.max() > 0.8 * truth[seen].max()


@pytest.mark.slow
def test_two_days_of_a_few_hours(tmp_path):
    simulate_archive(tmp_path / "a.zarr", Days(2, 2.0, 10, 32, 6000.0, seed=3))
    rain = open_rain(tmp_path / "a.zarr")
    assert is_simulated(rain)
    steps = np.diff(rain["time"].values) / np.timedelta64(1, "m")
    assert sorted(set(steps.tolist())) == [10, 1440 - 110]
    values = rain["rain_rate"].values
    assert values.shape == (24, 32, 32)
    assert np.isnan(values[:, 0, 0]).all()
    assert np.isfinite(values[:, 16, 16]).all()
    assert 0.005 < np.nanmean(values > 0.1) < 0.8
    simulate_archive(tmp_path / "b.zarr", Days(1, 2.0, 10, 32, 6000.0, seed=4))
    np.testing.assert_array_equal(open_rain(tmp_path / "b.zarr")["rain_rate"], values[12:])


def test_regimes_differ():
    drawn = [draw_regime(np.random.default_rng(seed)) for seed in range(60)]
    assert {regime.name for regime in drawn} == {regime.name for regime in REGIMES}
    assert np.ptp([regime.tempo for regime in drawn]) > 0.5


def test_the_command(tmp_path, capsys):
    out = tmp_path / "sim.zarr"
    assert run(app, ["simulate", "--out", str(out), "--hours", "1", "--size", "16"]) == 0
    assert f"6 frames of simulated rain written to {out}" in capsys.readouterr().err


def test_numbers_that_make_no_archive_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="found 1 days of 30 h"):
        simulate_archive(tmp_path / "a.zarr", Days(hours=30.0))
