"""``nowcast verify``: what is scored against what, on which stretch, and what is printed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import DataError, SettingsError
from nowcast.cli import app
from nowcast.commands.verify import score, show, write
from nowcast.rain.store import write_dataset
from tests.nowcast.stores import N_OUT, moving_rain, small_model, write_all

TWO = {"thresholds": (0.1, 1.0), "scales": (1.0, 5.0)}


@pytest.fixture(scope="module")
def scores():
    return score(small_model(), moving_rain(), **TWO)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("verify"))


def verify(paths, *arguments: object) -> int:
    return run(app, ["verify", *map(str, paths), *map(str, arguments)])


def test_the_model_is_scored_beside_the_two_that_it_has_to_beat(scores):
    assert scores["forecaster"].values[:3].tolist() == ["model", "persistence", "extrapolation"]
    assert scores.sizes["lead_time"] == N_OUT
    assert scores["threshold"].values.tolist() == [0.1, 1.0]
    assert scores["scale"].values.tolist() == [1.0, 5.0]
    assert scores.attrs["source"] == "moving patches"
    # Rain that is only moved is known by extrapolation, and by an untrained model not at all.
    csi = scores["csi"].sel(threshold=0.1).isel(lead_time=-1)
    assert csi.sel(forecaster="extrapolation") > 0.95
    assert csi.sel(forecaster="extrapolation") > csi.sel(forecaster="persistence") + 0.3
    assert csi.sel(forecaster="persistence") > csi.sel(forecaster="model")


def test_the_part_that_the_model_never_saw_is_the_default(scores, capsys):
    # Seven frames, the last of the day; two go in and three are compared.
    assert scores.attrs["n_cases"] == 3
    assert scores.attrs["first_start"] == "2020-06-01T03:10:00"
    assert scores.attrs["last_start"] == "2020-06-01T03:30:00"
    score(small_model(), moving_rain(), every=2, **TWO)
    assert capsys.readouterr() == ("", "")


def test_a_stretch_may_be_chosen_and_overlap_is_said(capsys):
    made = score(small_model(), moving_rain(), start="2020-06-01T01:00Z", stop="2020-06-01 02:00")
    assert made.attrs["first_start"] == "2020-06-01T01:20:00"
    assert made.attrs["n_cases"] == 3
    assert made["threshold"].values.tolist() == [0.1, 1.0, 5.0, 10.0]
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "warning: 2020-06-01T01:00 to 2020-06-01T02:00 overlaps what the model was trained or "
        "validated on (2020-06-01T00:00 to 2020-06-01T02:40); its scores flatter it\n"
    )


def test_frames_between_starts(scores):
    assert score(small_model(), moving_rain(), every=2, **TWO).attrs["n_cases"] == 2


def test_a_stretch_without_a_run_that_is_long_enough_is_refused():
    for start, stop, found in (
        ("2020-06-01T03:20", None, 4),
        ("2020-06-02", "2020-06-03", 0),
        ("2020-06-01T03:00", "2020-06-01T02:00", 0),
    ):
        with pytest.raises(DataError, match=rf"2 \+ 3 consecutive .* found {found} frames and no"):
            score(small_model(), moving_rain(), start=start, stop=stop)
    gaps = np.delete(10 * np.arange(24), [18, 21])
    with pytest.raises(DataError, match="found 5 frames and no such run"):
        score(small_model(), moving_rain(gaps))


def test_another_grid_or_step_is_refused():
    with pytest.raises(DataError, match=r"expected a grid of 1000 x 1000 m, .* 500 x 500 m"):
        score(small_model(), moving_rain(spacing=500.0))
    with pytest.raises(DataError, match=r"expected frames every 10 min, .* every 5 min"):
        score(small_model(), moving_rain(5 * np.arange(24)))


def test_what_is_no_time_is_named_by_its_option():
    with pytest.raises(SettingsError, match=r"--from: expected a time .* found 'soon'"):
        score(small_model(), moving_rain(), start="soon")
    with pytest.raises(SettingsError, match=r"--to: expected a time .* found ''"):
        score(small_model(), moving_rain(), stop="")


def test_a_model_of_one_frame_has_no_extrapolation_beside_it(capsys):
    made = score(small_model(n_in=1), moving_rain(), **TWO)
    assert made["forecaster"].values.tolist() == ["model", "persistence"]
    assert "a single frame, which shows no motion" in capsys.readouterr().err


def test_simulated_rain_is_called_so_in_the_table(scores, capsys):
    made = score(small_model(), moving_rain(title="Rain rate of Simulated radar"), **TWO)
    assert made.attrs["simulated"] == 1
    show(made)
    assert "Forecasts of simulated rain at 1 mm/h or more" in capsys.readouterr().out
    show(scores)
    assert "Forecasts of rain at 1 mm/h or more" in capsys.readouterr().out


def test_the_table_is_whole_where_there_is_no_terminal(scores, capsys):
    show(scores)
    out = capsys.readouterr().out
    assert "\N{HORIZONTAL ELLIPSIS}" not in out
    for text in ("+10", "+30", "model", "persistence", "extrapolation", "CSI gain"):
        assert text in out


def test_json_and_picture_are_written(scores, tmp_path, capsys):
    write(scores, tmp_path)
    assert json.loads((tmp_path / "verify.json").read_text())["n_cases"] == 3
    assert (tmp_path / "verify.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["verify.json", "verify.png"]
    assert capsys.readouterr().out == ""


def test_json_alone_is_on_standard_output(paths, tmp_path, capsys):
    out = tmp_path / "new" / "scores"
    assert verify(paths, "--json", "--out", out, "--thresholds", "1,0.1,1", "--scales", "5") == 0
    said = capsys.readouterr()
    printed = json.loads(said.out)
    assert printed == json.loads((out / "verify.json").read_text())
    assert list(printed["forecasters"]["model"]["10"]["thresholds"]) == ["0.1", "1"]
    assert list(printed["forecasters"]["model"]["10"]["thresholds"]["1"]["fss"]) == ["5"]
    assert said.err == f"scores written to {out / 'verify.json'} and {out / 'verify.png'}\n"


def test_people_get_a_table(paths, capsys):
    assert verify(paths, "--thresholds", "0.1,1,1", "--every", 3) == 0
    said = capsys.readouterr()
    assert "pooled over 1 case" in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--thresholds", "heavy"), "--thresholds: expected numbers with commas"),
        (("--thresholds", "nan"), "--thresholds: expected numbers with commas"),
        (("--thresholds", "0,1"), "thresholds must be above 0 mm/h"),
        (("--scales", "1,100"), "at most the 32 km of the grid, found 100 km"),
        (("--from", "yesterday"), "--from: expected a time such as 2020-02-07T13:20 (UTC)"),
    ],
)
def test_settings_out_of_range_end_with_2(paths, capsys, arguments, said):
    assert verify(paths, *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_input_that_is_none_ends_with_3(paths, tmp_path, capsys):
    model, rain = paths
    write_dataset(moving_rain(spacing=500.0), tmp_path / "fine.zarr")
    for given, said in (
        ((rain, rain), "expected a model that nowcast train wrote"),
        ((model, tmp_path / "none.zarr"), "expected a rain store, found nothing there"),
        ((model, model), "expected a rain store (zarr)"),
        ((model, tmp_path / "fine.zarr"), "expected a grid of 1000 x 1000 m"),
    ):
        assert verify(given) == 3
        err = capsys.readouterr().err
        assert said in err
        assert err.count("\n") == 1


def test_a_folder_that_cannot_be_is_known_before_the_work(paths, tmp_path, capsys, monkeypatch):
    from nowcast.commands import verify as command

    monkeypatch.setattr(command, "score", lambda *_, **__: pytest.fail("worked in vain"))
    (tmp_path / "file").write_text("")
    assert verify(paths, "--out", tmp_path / "file") == 3
    assert f"{tmp_path / 'file'}: expected a folder or nothing" in capsys.readouterr().err
