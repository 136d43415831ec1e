"""``nowcast verify``: the methods that are compared, the stretch of time, and the output."""

from __future__ import annotations

import json

import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import DataError, SettingsError
from nowcast.cli import app
from nowcast.commands.verify import score, show, write
from nowcast.forecasters import forecaster
from nowcast.forecasters.trained import Trained
from nowcast.rain.store import write_dataset
from tests.nowcast.stores import N_OUT, moving_rain, small_model, write_all

TWO = {"thresholds": (0.1, 1.0), "scales": (1.0, 5.0)}


def methods(model=None, names=("persistence", "extrapolation")) -> dict:
    return ({"model": Trained(model)} if model else {}) | {n: forecaster(n) for n in names}


def scored(rain=None, model=None, **options):
    """Scores of a model, persistence and extrapolation."""
    model = model or small_model()
    return score([moving_rain() if rain is None else rain], methods(model), model=model, **options)


@pytest.fixture(scope="module")
def scores():
    return scored(**TWO)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("verify"))


def verify(paths, *arguments: object) -> int:
    model, rain = paths
    named = [rain, "--model", model, "--method", "model,persistence,extrapolation", *arguments]
    return run(app, ["verify", *map(str, named)])


def test_the_model_is_compared_with_persistence_and_extrapolation(scores):
    assert scores["forecaster"].values.tolist() == ["model", "persistence", "extrapolation"]
    assert scores.sizes["lead_time"] == N_OUT
    assert scores["threshold"].values.tolist() == [0.1, 1.0]
    assert scores["scale"].values.tolist() == [1.0, 5.0]
    assert scores.attrs["source"] == "moving patches"
    assert scores.attrs["reference"] == "extrapolation"
    # Extrapolation predicts rain that only moves, and an untrained model does not.
    csi = scores["csi"].sel(threshold=0.1).isel(lead_time=-1)
    assert csi.sel(forecaster="extrapolation") > 0.6
    assert csi.sel(forecaster="extrapolation") > csi.sel(forecaster="persistence") + 0.3
    assert csi.sel(forecaster="persistence") > csi.sel(forecaster="model")


@pytest.mark.slow
def test_no_model_is_needed(paths, capsys):
    _, rain = paths
    assert run(app, ["verify", str(rain), "--lead", "30min", "--json", "--every", "2"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert list(made["forecasters"]) == ["persistence", "extrapolation", "sprog"]
    assert made["reference"] == "sprog"
    assert list(made["forecasters"]["sprog"]) == ["20"]
    assert made["findings"]


@pytest.mark.slow
def test_another_scored_method_may_be_the_reference(paths, capsys):
    assert verify(paths, "--against", "persistence", "--json") == 0
    at = json.loads(capsys.readouterr().out)["forecasters"]["persistence"]["10"]
    assert at["thresholds"]["0.1"]["csi_difference"] == 0
    assert verify(paths, "--against", "sprog") == 2
    assert "among" not in capsys.readouterr().out
    with pytest.raises(SettingsError, match="one of the methods that are scored, model, pers"):
        scored(against="sprog")


def test_methods_are_checked_before_the_work(paths, capsys):
    _, rain = paths
    for names, message in (
        ("magic", "--method: expected one of auto, persistence"),
        ("model", "--method model: expected the folder"),
        (" , ", "--method: expected names with commas between them, found none"),
    ):
        assert run(app, ["verify", str(rain), "--method", names]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_several_stores_are_several_events():
    other = moving_rain(title="elsewhere")
    made = score([moving_rain(), other], methods(), lead=30, **TWO)
    assert made.attrs["n_events"] == 2
    assert made.attrs["n_cases"] == 2 * score([other], methods(), lead=30, **TWO).attrs["n_cases"]
    assert made.attrs["source"] == "moving patches; elsewhere"


def test_the_test_part_is_the_default(scores, capsys):
    # The last seven frames of the day: three are input, and all three leads reach the last two.
    assert scores.attrs["n_cases"] == 4
    assert scores.attrs["first_start"] == "2020-06-01T03:20:00"
    assert scores.attrs["last_start"] == "2020-06-01T03:50:00"
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_store_that_the_model_was_not_trained_on_is_scored_whole():
    model = small_model()
    model.about["trained_on"] = "moving patches"
    known, other = (scored(moving_rain(title=t), model) for t in ("moving patches", "elsewhere"))
    assert known.attrs["first_start"] == "2020-06-01T03:20:00"
    assert other.attrs["first_start"] == "2020-06-01T00:30:00"


def test_a_stretch_may_be_chosen_and_overlap_is_a_warning(capsys):
    made = scored(start="2020-06-01T01:00Z", stop="2020-06-01 02:00")
    assert made.attrs["first_start"] == "2020-06-01T01:30:00"
    assert made["threshold"].values.tolist() == [0.1, 1.0, 5.0, 10.0]
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "warning: 2020-06-01T01:00 to 2020-06-01T02:00 overlaps what the model was trained or "
        "validated on (2020-06-01T00:00 to 2020-06-01T02:40); its scores flatter it\n"
    )


def test_fewer_starts_are_named_with_their_leads(capsys):
    made = scored(every=3, **TWO)
    assert made.attrs["n_cases"] == 1
    assert capsys.readouterr().err == (
        "--every 3: lead times 10, 20, 30 min, valid times different for each lead\n"
    )


@pytest.mark.slow
def test_a_stretch_without_a_long_run_is_refused():
    for start, stop, count in (
        ("2020-06-01T03:20", None, 4),
        ("2020-06-02", "2020-06-03", 0),
        ("2020-06-01T03:00", "2020-06-01T02:00", 0),
    ):
        with pytest.raises(DataError, match=rf"and 3 consecutive .* no such run in {count} frames"):
            scored(start=start, stop=stop)
    gaps = np.delete(10 * np.arange(24), [18, 21])
    with pytest.raises(DataError, match="found no such run in 5 frames"):
        scored(moving_rain(gaps))


@pytest.mark.slow
def test_the_table_names_simulated_rain(scores, capsys):
    made = scored(moving_rain(title="Rain rate of Simulated radar"), **TWO)
    assert made.attrs["simulated"] == 1
    show(made)
    assert "Forecasts of simulated rain at 1 mm/h or more" in capsys.readouterr().out
    show(scores)
    assert "Forecasts of rain at 1 mm/h or more" in capsys.readouterr().out


def test_the_table_is_whole_without_a_terminal(scores, capsys):
    show(scores)
    out = capsys.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in out
    for text in ("+10", "+30", "model", "persistence", "extrapolation", "CSI gain"):
        assert text in out


@pytest.mark.slow
def test_json_and_picture_are_written(scores, tmp_path, capsys):
    write(scores, tmp_path, [moving_rain()], methods(small_model()))
    assert json.loads((tmp_path / "verify.json").read_text())["n_cases"] == 4
    assert (tmp_path / "verify.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "verify.html", "verify.json", "verify.png",
    ]  # fmt: skip
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_json_alone_is_on_standard_output(paths, tmp_path, capsys):
    out = tmp_path / "new" / "scores"
    assert verify(paths, "--json", "--out", out, "--thresholds", "1,0.1,1", "--scales", "5") == 0
    output = capsys.readouterr()
    printed = json.loads(output.out)
    assert printed == json.loads((out / "verify.json").read_text())
    assert list(printed["forecasters"]["model"]["10"]["thresholds"]) == ["0.1", "1"]
    assert list(printed["forecasters"]["model"]["10"]["thresholds"]["1"]["fss"]) == ["5"]
    assert output.err == f"scores written to {out}: verify.json, verify.png and verify.html\n"


@pytest.mark.slow
def test_a_table_is_printed_by_default(paths, capsys):
    assert verify(paths, "--thresholds", "0.1,1,1") == 0
    output = capsys.readouterr()
    assert "pooled over 4 cases" in output.out
    assert output.err == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--thresholds", "heavy"), "--thresholds: expected numbers with commas"),
        (("--thresholds", "nan"), "--thresholds: expected numbers with commas"),
        (("--thresholds", "0,1"), "thresholds must be above 0 mm/h"),
        (("--scales", "1,100"), "at most the 32 km of the grid, found 100 km"),
        (("--from", "yesterday"), "--from: expected a time such as 2020-02-07T13:20 (UTC)"),
    ],
)
def test_settings_out_of_range_end_with_2(paths, capsys, arguments, message):
    assert verify(paths, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_wrong_input_ends_with_3(paths, tmp_path, capsys):
    model, rain = paths
    write_dataset(moving_rain(spacing=500.0), tmp_path / "fine.zarr")
    for inputs, message in (
        ((rain, rain), "expected a model that nowcast train wrote"),
        ((model, tmp_path / "none.zarr"), "expected a rain store, found nothing there"),
        ((model, model), "expected a rain store (zarr)"),
        ((model, tmp_path / "fine.zarr"), "expected a grid of 1000 x 1000 m"),
    ):
        assert verify(inputs) == 3
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1


def test_an_impossible_folder_is_refused_before_the_work(paths, tmp_path, capsys, monkeypatch):
    from nowcast.commands import verify as command

    monkeypatch.setattr(command, "score", lambda *_, **__: pytest.fail("worked in vain"))
    (tmp_path / "file").write_text("")
    assert verify(paths, "--out", tmp_path / "file") == 3
    assert f"{tmp_path / 'file'}: expected a folder or nothing" in capsys.readouterr().err
