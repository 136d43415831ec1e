"""Arguments of commands, their messages, and the settings file of a watch."""

from __future__ import annotations

import io
import json
import sys

import h5py
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from daskdl.console import run
from daskdl.errors import SettingsError
from nowcast.cli import app
from nowcast.commands import talk
from nowcast.commands.arguments import lead_minutes, numbers
from nowcast.live.office import Office, initial, plain, schema
from nowcast.rain.store import open_stored
from nowcast.simulate import simulate
from nowcast.simulate.radar import Radar
from tests.nowcast.radar.odim_file import write_sweep


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        (None, None),
        ("90", 90),
        ("60min", 60),
        (" 60 min ", 60),
        ("45 Minutes", 45),
        ("30m", 30),
        ("1h", 60),
        ("1.5 hours", 90),
        ("0.5H", 30),
    ],
)
def test_lead_times(text, minutes):
    assert lead_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "soon", "0", "0min", "-5", "5s", "1h30", "1e2", "nan", "1.h"])
def test_a_text_that_is_no_lead_time_is_quoted(text):
    with pytest.raises(SettingsError, match="--lead: expected a time such as 60min or 1h") as error:
        lead_minutes(text)
    assert f"found {text!r}; give a number" in str(error.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [("1", (1.0,)), ("0.1,1,5", (0.1, 1.0, 5.0)), (" 5 , 1e-1 ", (0.1, 5.0)), ("1,1,1.0", (1.0,))],
)
def test_numbers_are_sorted_without_duplicates(text, values):
    assert numbers("--scales", text) == values


@pytest.mark.parametrize("text", ["", ",", "1,", "one", "1;2", "nan", "1,inf"])
def test_a_text_without_numbers_is_quoted_with_its_option(text):
    with pytest.raises(SettingsError, match="--scales: expected numbers with commas") as error:
        numbers("--scales", text)
    assert f"found {text!r}; write 0.1" in str(error.value)


def test_messages_go_to_standard_error_and_data_to_standard_output(capsys):
    talk.say("3 frames written")
    talk.print_json({"frames": 3, "leads": ["10", None]})
    out, err = capsys.readouterr()
    assert err == "3 frames written\n"
    assert json.loads(out) == {"frames": 3, "leads": ["10", None]}


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(talk.time, "monotonic", lambda: clock[0])
    with talk.progress_bar("ingest") as advance:
        for done in range(1, 9):
            clock[0] += talk.INTERVAL / 2.5
            advance(done, 8)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["ingest: 3 of 8, about 1 min left", "ingest: 6 of 8"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_on_standard_error(capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with talk.progress_bar("verify") as advance:
        advance(3, 8)
        advance(8, 8)
    assert "verify" in terminal.getvalue()
    assert "8/8" in terminal.getvalue()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_below_the_bar_is_passed_on(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    with pytest.raises(KeyError), talk.progress_bar("verify"):
        raise KeyError("x")


def test_the_first_file_has_all_defaults_and_is_read_again(tmp_path, capsys):
    path = tmp_path / "office.yaml"
    path.write_text(initial())
    result = CliRunner().invoke(app, ["config", str(path)])
    expected = Office(source="/data/incoming", out="/srv/nowcast")
    assert Office.model_validate(yaml.safe_load(result.stdout)) == expected
    assert Office.model_validate(plain(expected)) == expected
    described = json.loads(json.dumps(schema()))
    assert described["properties"].keys() == Office.model_fields.keys()
    assert "mosaic" in described["$defs"]["IngestSettings"]["properties"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("methd: sprog", "methd: .* did you mean method?"),
        ("ingest: {spacng: 500}", r"ingest\.spacng: .* did you mean spacing"),
        (
            "alerts: {areas: a, rules: [{name: a, rate: 1}], send: {comand: [x]}}",
            r"did you mean command",
        ),
        ("method: spog", "expected a method among auto, .*, found 'spog'"),
        ("model: folder", "expected the method auto or model with a model, found sprog, which"),
        ("keep: long", "keep: expected a time such as 90min"),
        ("members: many", "members: expected a whole number, found 'many'"),
        ("alerts: {rules: []}", "alerts.areas: expected a value, found none"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, capsys, line, expected):
    import re

    path = tmp_path / "office.yaml"
    path.write_text(f"source: in\nout: out\n{line}\n")
    assert run(app, ["config", str(path)]) == 2
    assert re.search(expected, capsys.readouterr().err)


@pytest.mark.slow
def test_options_of_addresses_do_nothing_for_files_and_are_refused(tmp_path, capsys):
    arguments = ["ingest", str(tmp_path), "--out", str(tmp_path / "a.zarr"), "--to", "2024-01-01"]
    assert run(app, arguments) == 2
    assert "nowcast: --to: expected an address or an archive" in capsys.readouterr().err


def test_options_override_the_file_of_a_watch(tmp_path):
    radar = Radar(gates=60, elevations=(0.5,))
    simulate(tmp_path / "in", hours=0.5, step_minutes=10, radar=radar)
    settings = {
        "source": str(tmp_path / "in"), "out": str(tmp_path / "out"), "method": "persistence",
        "ingest": {"size": 32, "spacing": 2000}, "storage": {"secret": "hidden"}, "keep": "2d",
    }  # fmt: skip
    (tmp_path / "office.yaml").write_text(yaml.safe_dump(settings))
    command = ["watch", "--config", str(tmp_path / "office.yaml"), "--once", "--keep", "6h"]
    assert run(app, [*command, "--lead", "20min"]) == 0
    latest = json.loads((tmp_path / "out" / "latest.json").read_text())
    assert latest["method"] == "persistence"
    text = (tmp_path / "out" / "settings.yaml").read_text()
    assert "hidden" not in text
    resolved = Office.model_validate(yaml.safe_load(text))
    assert (resolved.keep, resolved.lead, resolved.ingest.size) == (360, 20, (32, 32))


@pytest.mark.slow
def test_ingest_reads_the_moment_that_is_named(tmp_path):
    with h5py.File(write_sweep(tmp_path / "a.h5"), "a") as file:
        file["dataset1/data1/what"].attrs["quantity"] = np.bytes_("ZH")
    out = tmp_path / "rain.zarr"
    command = ["ingest", str(tmp_path / "a.h5"), "--out", str(out), "--size", "40"]
    without = CliRunner().invoke(app, [*command, "--workers", "1"])
    assert "name the moment to read, such as --moment TH" in str(without.exception)
    done = CliRunner().invoke(app, [*command, "--workers", "1", "--moment", "ZH"])
    assert done.exit_code == 0
    assert open_stored(out)["rain_rate"].max() > 1
