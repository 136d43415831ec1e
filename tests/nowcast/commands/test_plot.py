"""``nowcast plot`` and ``nowcast info``: pictures, comparisons, and facts about files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from daskdl.console import run
from nowcast import plot as pictures
from nowcast.cli import app
from nowcast.commands.info import cf_faults
from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict_to
from nowcast.plot import forecast as forecast_picture
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain, write_dataset
from nowcast.simulate import simulate
from nowcast.simulate.radar import Radar
from tests.nowcast.stores import N_OUT, a_forecast, moving_rain


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plot")
    write_dataset(a_forecast(), folder / "f.zarr")
    write_dataset(a_forecast(), folder / "f.nc")
    write_dataset(moving_rain(), folder / "rain.zarr")
    return folder


def plot(forecast, out, *arguments: object) -> int:
    return run(app, ["plot", str(forecast), "--out", str(out), *map(str, arguments)])


def test_a_picture_and_an_animation(folder, tmp_path, capsys):
    assert plot(folder / "f.nc", tmp_path / "a.PNG", "--observed", folder / "rain.zarr") == 0
    assert plot(folder / "f.zarr", tmp_path / "a.gif") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"picture written to {tmp_path / n}" for n in ("a.PNG", "a.gif")]
    with Image.open(tmp_path / "a.PNG") as picture:
        assert picture.format == "PNG"
    with Image.open(tmp_path / "a.gif") as animation:
        assert (animation.format, animation.n_frames) == ("GIF", N_OUT)


def test_cells_are_drawn_on_the_maps_of_their_times(folder, tmp_path, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(forecast_picture, "draw_cells", lambda axes, cells: drawn.append(cells))
    rain = moving_rain()
    rain["rain_rate"][8:15] = rain["rain_rate"][:7].values  # storms that have not left the grid
    write_dataset(rain, tmp_path / "rain.zarr")
    words = ["--observed", tmp_path / "rain.zarr", "--cells"]
    assert plot(folder / "f.nc", tmp_path / "a.png", *words, "--members", 0) == 0
    # Two rows, each of the last frame and the leads.
    assert len(drawn) == 2 * (1 + N_OUT)
    assert [len({cell.time for cell in cells}) for cells in drawn[: 1 + N_OUT]] == [1] * 4
    start = a_forecast()["forecast_reference_time"].values
    assert drawn[0][0].time == drawn[1 + N_OUT][0].time == start
    moving = [cell for cell in drawn[0] if cell.way is not None]
    assert moving
    for cell in moving:
        assert np.abs(cell.rings[0]).max() <= 16.5
        east, north = cell.way[1] - cell.way[0]
        assert (east, north) == pytest.approx((3, 0), abs=1)
    assert plot(folder / "f.nc", tmp_path / "a.gif", "--cells") == 2
    assert "expected a picture that ends in .png" in capsys.readouterr().err


@pytest.mark.slow
def test_observed_frames_are_taken_at_the_times_of_the_forecast(folder, tmp_path, monkeypatch):
    drawn = {}

    def draw(forecast, path, *, observed, before, **_):
        (forecast,) = forecast.values()
        seen = None if observed is None else observed.load()
        drawn.update(forecast=forecast["rain_rate"].load(), observed=seen, before=before.load())

    monkeypatch.setattr(pictures, "plot_forecast", draw)
    # The store has the first two times of the forecast from frame 11, not the third.
    write_dataset(moving_rain().isel(time=slice(5, 14)), tmp_path / "rain.zarr")
    assert plot(folder / "f.zarr", tmp_path / "a.png", "--observed", tmp_path / "rain.zarr") == 0
    np.testing.assert_array_equal(drawn["forecast"], a_forecast()["rain_rate"])
    np.testing.assert_array_equal(drawn["before"], moving_rain()["rain_rate"][11:12])
    np.testing.assert_array_equal(drawn["observed"][:2], moving_rain()["rain_rate"][12:14])
    assert np.isnan(drawn["observed"][2]).all()
    # A forecast of now: no lead was observed yet, but the last frame is shown.
    write_dataset(moving_rain().isel(time=slice(5, 12)), tmp_path / "now.zarr")
    assert plot(folder / "f.zarr", tmp_path / "a.png", "--observed", tmp_path / "now.zarr") == 0
    assert drawn["observed"] is None
    assert drawn["before"].sizes["time"] == 1


@pytest.mark.slow
def test_forecasts_of_one_time_are_drawn_together(folder, tmp_path, monkeypatch, capsys):
    drawn = {}
    monkeypatch.setattr(pictures, "plot_forecast", lambda made, *_, **more: drawn.update(made))
    made = a_forecast()
    made.attrs["source"] = "nowcast, method sprog, from weather radar, ODIM_H5, station Here, by it"
    write_dataset(made, tmp_path / "sprog.nc")
    words = [str(folder / "f.nc"), str(tmp_path / "sprog.nc"), str(folder / "f.zarr")]
    assert run(app, ["plot", *words, "--out", str(tmp_path / "a.png")]) == 0
    first, last = folder / "f.nc", folder / "f.zarr"
    assert list(drawn) == [f"noise ({first})", "sprog", f"noise ({last})"]
    write_dataset(a_forecast(12), tmp_path / "later.nc")
    words[1] = str(tmp_path / "later.nc")
    assert run(app, ["plot", *words, "--out", str(tmp_path / "a.png")]) == 3
    assert "expected a forecast from 2020-06-01T01:50" in capsys.readouterr().err


def test_missing_probabilities_are_a_usage_error(folder, tmp_path, capsys):
    assert plot(folder / "f.nc", tmp_path / "a.png", "--threshold", 1) == 2
    assert "found none for 1 mm/h" in capsys.readouterr().err


@pytest.mark.slow
def test_observations_of_another_place_or_time_are_refused(folder, tmp_path, capsys):
    for name, rain, message in (
        # As many cells, but elsewhere.
        ("north.zarr", moving_rain(latitude=55.0), "expected the forecast's grid, 32 x 32 cells"),
        ("fine.zarr", moving_rain(spacing=500.0), "expected the forecast's grid, 32 x 32 cells"),
        (
            "before.zarr",
            moving_rain(range(0, 60, 10)),
            "expected frames from 2020-06-01T02:00 to 2020-06-01T02:20, the forecast's times",
        ),
    ):
        write_dataset(rain, tmp_path / name)
        assert plot(folder / "f.zarr", tmp_path / "a.png", "--observed", tmp_path / name) == 3
        err = capsys.readouterr().err
        assert err.startswith(f"nowcast: {tmp_path / name}: {message}")
        assert err.count("\n") == 1
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize("name", ["a.jpg", "a", "png"])
def test_other_kinds_of_pictures_are_a_usage_error(folder, tmp_path, capsys, name):
    assert plot(folder / "f.zarr", tmp_path / name) == 2
    assert f"ends in .png or .gif, found {tmp_path / name}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_is_not_replaced_by_a_picture(folder, tmp_path):
    (tmp_path / "a.png").mkdir()
    (tmp_path / "a.png" / "notes.txt").write_text("years of work")
    assert plot(folder / "f.zarr", tmp_path / "a.png") == 2
    assert (tmp_path / "a.png" / "notes.txt").read_text() == "years of work"


def test_other_files_end_with_3_and_no_picture(folder, tmp_path, capsys):
    for path in (folder / "rain.zarr", folder / "none.zarr", folder):
        assert plot(path, tmp_path / "a.png") == 3
        err = capsys.readouterr().err
        assert err.startswith(f"nowcast: {path}: expected a forecast")
        assert err.count("\n") == 1
    assert plot(folder / "f.zarr", tmp_path / "a.png", "--observed", folder / "f.zarr") == 3
    assert "expected rain_rate (time, y, x)" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_failed_picture_leaves_nothing(folder, tmp_path, monkeypatch, capsys):
    from matplotlib.figure import Figure

    def fail(figure, file, **_):
        file.write_bytes(b"half a picture")
        raise MemoryError("no more")

    monkeypatch.setattr(Figure, "savefig", fail)
    assert plot(folder / "f.zarr", tmp_path / "a.png") == 1
    assert "internal error: MemoryError" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def facts_of(path):
    result = CliRunner().invoke(app, ["info", str(path), "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.fixture
def store(tmp_path):
    grid = Grid.around(52.0, 5.0, size=(20, 20), spacing=1000.0)
    times = np.datetime64("2026-05-20T12:00", "ns") + 5 * np.arange(6) * np.timedelta64(1, "m")
    rain = np.zeros((5, 20, 20), np.float32)
    rain[:, :10] = 1.0
    rain[:, :, :5] = np.nan
    times = np.delete(times, 2)
    about = {"title": "made", "source": "test"}
    dataset = rain_dataset(grid, times, rain, attributes={}, global_attributes=about)
    write_dataset(dataset, tmp_path / "rain.zarr")
    return tmp_path / "rain.zarr"


def test_store_and_forecast(store, tmp_path):
    facts = facts_of(store)
    assert facts["gaps"] == [["2026-05-20T12:05Z", "2026-05-20T12:15Z"]]
    assert (facts["frames"], facts["missing_frames"], facts["step_minutes"]) == (5, 1, 5)
    assert (facts["missing_share"], facts["wet_share"]) == (0.25, 0.5)
    with open_rain(store) as rain:
        predict_to(tmp_path / "f.nc", forecaster("persistence"), rain, "2026-05-20T12:25")
    facts = facts_of(tmp_path / "f.nc")
    assert (facts["kind"], facts["start"]) == ("forecast", "2026-05-20T12:25Z")
    assert (len(facts["lead_minutes"]), facts["wet_share"]) == (12, 0.5)


def test_scans_with_a_gap_and_a_damaged_file(tmp_path):
    scans = simulate(tmp_path, hours=1, step_minutes=10, radar=Radar(gates=60, elevations=(0.5,)))
    scans[2].unlink()
    scans[4].write_bytes(scans[4].read_bytes()[:2000])
    facts = facts_of(tmp_path)
    assert (facts["kind"], facts["files"], facts["formats"]) == ("scans", 5, {"ODIM_H5": 5 - 1})
    assert facts["gaps"] == [["2020-06-01T00:10Z", "2020-06-01T00:30Z"]]
    assert list(facts["unreadable"]) == [str(scans[4])]


def test_cf_faults_are_found(store):
    with open_rain(store) as rain:
        assert cf_faults(rain) == []
        flags = rain["rain_rate"].assign_attrs(flag_masks=[1])
        del flags.attrs["units"]
        assert cf_faults(rain.assign(flags=flags)) == []
        spoilt = rain.drop_vars("crs").assign_attrs(Conventions="none")
        del spoilt["rain_rate"].attrs["units"]
        assert [fault.partition(":")[0] for fault in cf_faults(spoilt)] == [
            "Conventions", "rain_rate", "rain_rate",
        ]  # fmt: skip
