"""The table and the JSON of scores."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from daskdl.errors import SettingsError
from nowcast.forecasters import Extrapolation, Persistence
from nowcast.verification import score_table, to_json, verify, write_json
from tests.nowcast.stores import translation
from tests.nowcast.verification.test_verify import rain


@pytest.fixture(scope="module")
def scores():
    frames = rain(translation(36, 1.0, -1.0, size=64, margin=60, seed=2))
    forecasters = {"persistence": Persistence(), "flow": Extrapolation()}
    return verify(frames, forecasters, 3, thresholds=(0.1, 1.0, 900.0))


def text(table: object, width: int = 100) -> str:
    console = Console(width=width, no_color=True, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


@pytest.mark.slow
def test_json_has_every_score_by_method_lead_and_threshold(scores):
    report = json.loads(json.dumps(to_json(scores), allow_nan=False))
    assert report["n_cases"] == 31
    assert list(report["forecasters"]) == ["persistence", "flow"]
    assert list(report["forecasters"]["flow"]) == ["5", "10", "15"]
    at = report["forecasters"]["flow"]["10"]
    here = scores.isel(forecaster=1, lead_time=1)
    assert at["mae"] == pytest.approx(float(here["mae"]))
    one = at["thresholds"]["1"]
    for name in ("csi", "pod", "far", "bias", "csi_difference"):
        assert one[name] == pytest.approx(float(here[name].sel(threshold=1.0))), name
    for name in ("hits", "misses", "false_alarms", "correct_negatives"):
        assert one[name] == int(here[name].sel(threshold=1.0)), name
    assert list(one["fss"]) == ["1", "5", "20"]
    assert one["fss"]["5"] == pytest.approx(float(here["fss"].sel(threshold=1.0, scale=5)))
    low, high = one["csi_difference_interval"]
    assert low <= one["csi_difference"] <= high
    assert report["events"]["10"]["1"] == int(here["events"].sel(threshold=1.0))
    assert report["scored_fraction"]["15"] == pytest.approx(float(scores["scored_fraction"][-1]))


def test_undefined_scores_are_null(scores):
    never = to_json(scores)["forecasters"]["flow"]["5"]["thresholds"]["900"]
    assert [never[name] for name in ("csi", "pod", "bias")] == [None] * 3
    assert never["csi_difference_interval"] == [None, None]


@pytest.mark.slow
def test_a_failed_write_leaves_the_old_file(scores, tmp_path, monkeypatch):
    path = tmp_path / "verify.json"
    write_json(scores, path)
    first = path.read_text()
    assert json.loads(first) == json.loads(json.dumps(to_json(scores)))

    def fails(self, *args, **options):
        self.open("w").close()
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", fails)
    with pytest.raises(OSError, match="disk full"):
        write_json(scores, path)
    assert path.read_text() == first
    assert list(tmp_path.iterdir()) == [path]


def test_table_shows_leads_methods_cases_and_events(scores):
    shown = text(score_table(scores, 1.0))
    assert "pooled over 31 cases" in shown
    lines = shown.splitlines()
    flow = [line for line in lines if "flow" in line]
    assert len(flow) == 3
    here = scores.sel(threshold=1.0).isel(forecaster=1, lead_time=0)
    for value in (here["csi"], here["pod"], here["mae"], here["fss"].sel(scale=5)):
        assert f"{float(value):.2f}" in flow[0]
    assert f"{float(here['csi_difference']):+.2f} [" in flow[0]
    still = next(line for line in lines if "+5 " in line)
    assert "persistence" in still
    assert str(int(scores["events"].sel(threshold=1.0)[0])) in still
    assert "[" not in still


def test_table_fits_eighty_columns(scores):
    shown = text(score_table(scores, 1.0), width=80)
    assert "…" not in shown
    assert "persistence" in shown


def test_simulated_rain_is_called_so(scores):
    assert "imulated" not in text(score_table(scores))
    assert "simulated rain" in text(score_table(scores.assign_attrs(simulated="yes")))


def test_undefined_scores_are_dashes(scores):
    assert " - " in text(score_table(scores, 900.0))


def test_unknown_threshold_is_refused(scores):
    with pytest.raises(SettingsError, match=r"threshold 2 is not among 0\.1, 1, 900"):
        score_table(scores, 2.0)
