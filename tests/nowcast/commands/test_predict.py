"""``nowcast predict`` and ``nowcast export``."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from daskdl.console import run
from nowcast.cli import app
from nowcast.forecasters.file import open_forecast
from nowcast.forecasters.predict import predict as forecast_of
from nowcast.forecasters.trained import Trained
from nowcast.rain.store import open_rain, write_dataset, write_zarr
from nowcast.simulate import simulate
from tests.nowcast.stores import moving_rain, small_model, write_all


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("predict"))


def predict(paths, out, *arguments: str) -> int:
    model, rain = map(str, paths)
    command = ["predict", rain, "--method", "model", "--model", model, "--out", str(out)]
    return run(app, [*command, *arguments])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f.zarr", "new/folder/f.nc"])
def test_the_forecast_is_written_and_reported_on_standard_error(paths, tmp_path, capsys, name):
    assert predict(paths, tmp_path / name, "--at", "2020-06-01T02:00Z", "--lead", "20min") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"2 frames from 2020-06-01T02:00 UTC written to {tmp_path / name}\n"
    with open_forecast(tmp_path / name) as made, open_rain(paths[1]) as rain:
        expected = forecast_of(Trained.load(paths[0]), rain, "2020-06-01T02:00", 20)
        np.testing.assert_array_equal(made["rain_rate"], expected["rain_rate"])
        assert np.isfinite(made["rain_rate"]).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f.zarr", "f.nc"])
def test_an_older_forecast_is_replaced(paths, tmp_path, name):
    assert predict(paths, tmp_path / name) == 0
    assert predict(paths, tmp_path / name, "--lead", "10") == 0
    with open_forecast(tmp_path / name) as made:
        assert made.sizes["lead_time"] == 1
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("name", "package", "count", "some"),
    [
        ("f.tif", "rasterio", 8, {"f.tif", "f_probability_1mmh.tif"}),
        ("f.gif", "PIL", 3 * 7, {"f.gif", "f.gfw", "f.gif.aux.xml", "f_060min.pgw"}),
    ],
)
def test_files_of_a_product_are_in_one_folder(paths, tmp_path, name, package, count, some):
    pytest.importorskip(package)
    out = tmp_path / "new" / name
    for _ in range(2):  # the second run replaces the first
        assert run(app, ["predict", str(paths[1]), "--out", str(out)]) == 0
    names = {path.name for path in out.parent.iterdir()}
    assert len(names) == count
    assert some <= names


def test_neither_the_rain_store_nor_any_other_folder_is_replaced(paths, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("years of work")
    before = sorted(paths[1].rglob("*"))
    for out in (paths[1], paths[0], tmp_path):
        assert predict(paths, out) == 2
        assert f"found something else at {out}; choose another name" in capsys.readouterr().err
    assert sorted(paths[1].rglob("*")) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--at", "soon"), 2, "--at: expected a time such as 2020-02-07T13:20 (UTC) or 'latest'"),
        (("--at", ""), 2, "found ''"),
        (("--lead", "soon"), 2, "--lead: expected a time such as 60min or 1h, found 'soon'"),
        (("--lead", "25min"), 2, "expected a multiple of the frames' 10 min, found 25 min"),
        (("--out", "f.png"), 2, "--out: expected a name that ends in .nc, .zarr, .tif"),
        (("--lead", "1h"), 3, "--lead: the model was trained for 30 min ahead"),
        (("--at", "2020-06-01T01:03"), 3, "the nearest is at 2020-06-01T01:00"),
        (("--at", "2020-06-01T00:00"), 3, "min up to 2020-06-01T00:00, found 1 and none bef"),
    ],
)
def test_an_error_is_one_sentence_and_nothing_is_written(
    paths, tmp_path, capsys, arguments, code, message
):
    assert predict(paths, tmp_path / "f.zarr", *arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("nowcast: ")
    assert message in err
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_wrong_models_and_stores_end_with_3(paths, tmp_path, capsys):
    model, rain = paths
    write_dataset(moving_rain(spacing=500.0), tmp_path / "other.zarr")
    text = tmp_path / "rain.nc"
    text.write_text("no netCDF")
    for inputs, message in (
        ((rain, rain), f"{rain}: expected a model that nowcast train wrote"),
        ((tmp_path / "none", rain), f"{tmp_path / 'none'}: expected a model"),
        ((model, model), f"{model}: expected a rain store (zarr) as nowcast ingest writes it"),
        ((model, tmp_path / "none"), f"{tmp_path / 'none'}: expected a rain store, found nothing"),
        ((model, text), f"{text}: expected a rain store"),
        ((model, tmp_path / "other.zarr"), "expected a grid of 1000 x 1000 m"),
    ):
        assert predict(inputs, tmp_path / "f.zarr") == 3
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
    assert not (tmp_path / "f.zarr").exists()


@pytest.mark.slow
def test_a_folder_of_scans_gives_a_forecast_with_probabilities_and_members(tmp_path, capsys):
    simulate(tmp_path / "scans", hours=0.5, step_minutes=10, seed=3)
    command = ["predict", str(tmp_path / "scans"), "--lead", "20min", "--thresholds", "0.5,2"]
    assert run(app, [*command, "--members", "3", "--out", str(tmp_path / "f.nc")]) == 0
    err = capsys.readouterr().err
    assert "scans read, 0 files not read" in err
    # The shares of missing, dry and wet cells are reported as by an ingest, under the given name.
    assert re.search(rf"{re.escape(str(tmp_path))}.*: of the radar's range, .* % missing", err)
    with open_forecast(tmp_path / "f.nc") as made:
        assert made["rain_rate"].dims == ("lead_time", "y", "x")
        p = made["exceedance_probability"]
        assert p.dims == ("threshold", "lead_time", "y", "x")
        assert made["threshold"].values.tolist() == [0.5, 2]
        assert made["rain_rate_members"].sizes["realization"] == 3
        known = np.isfinite(made["rain_rate"])
        assert known.any()
        assert (np.isfinite(p) == known).all()
        assert ((p >= 0) & (p <= 1)).where(known, True).all()
        assert made["threshold"].attrs["units"] == "mm h-1"
    assert not list(tmp_path.glob("*.zarr"))


@pytest.mark.slow
@pytest.mark.parametrize("simulated", [0, 1])
def test_auto_takes_a_network_only_for_rain_like_that_of_its_gate(tmp_path, capsys, simulated):
    model = small_model()
    model.about["gate"] = {"passed": True, "sentence": "better", "simulated": True}
    model.save(tmp_path / "m")
    write_dataset(moving_rain(simulated=simulated), tmp_path / "rain.zarr")
    arguments = [str(tmp_path / "rain.zarr"), "--model", str(tmp_path / "m"), "--lead", "20min"]
    assert run(app, ["predict", *arguments, "--out", str(tmp_path / "f.nc")]) == 0
    taken = "it is taken" if simulated else "sprog is taken (or --method model)"
    assert f"the network is better; {taken}\n" in capsys.readouterr().err
    options = ["--method", "auto,model", "--every", "6", "--json"]
    assert run(app, ["verify", *arguments, *options]) == 0
    auto, network = json.loads(capsys.readouterr().out)["forecasters"].values()
    assert (auto == network) is bool(simulated)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["forecast.zarr", "forecast.nc"])
@pytest.mark.parametrize("folder", ["file", "/proc"])
def test_a_place_that_cannot_be_written_is_named(paths, tmp_path, capsys, folder, name):
    (tmp_path / "file").write_text("no folder")
    out = tmp_path / folder / name
    code = run(app, ["predict", str(paths[1]), "--method", "persistence", "--out", str(out)])
    err = capsys.readouterr().err
    assert code == 3
    assert str(out.parent) in err
    assert "internal error" not in err
    assert "Traceback" not in err


OPTIONS = (
    "--identifier", "NL-knmi-rain_rate", "--created-by", "A Person <person@example.org>",
    "--created-with", "https://github.com/mlcast-community/mlcast-dataset-knmi-test@v0.1.0",
    "--license", "CC-BY-4.0",
)  # fmt: skip


@pytest.mark.slow
def test_a_store_is_written(tmp_path, capsys):
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    arguments = ["export", str(tmp_path / "rain.zarr"), "--out", str(tmp_path / "out.zarr")]
    assert run(app, [*arguments, *OPTIONS]) == 0
    assert "0 missing times listed" in capsys.readouterr().err
    assert (tmp_path / "out.zarr" / "zarr.json").exists()


def test_a_wrong_identifier_is_a_usage_error(tmp_path, capsys):
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    arguments = ["export", str(tmp_path / "rain.zarr"), "--out", str(tmp_path / "out.zarr")]
    assert run(app, [*arguments, "--identifier", "x", *OPTIONS[2:]]) == 2
    assert "identifier" in capsys.readouterr().err
    assert not (tmp_path / "out.zarr").exists()
