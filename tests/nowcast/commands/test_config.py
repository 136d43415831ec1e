"""``nowcast config`` and ``nowcast watch --config``: one file of settings, and what it ran with."""

from __future__ import annotations

import json

import pytest
import yaml
from typer.testing import CliRunner

from daskdl.console import run
from nowcast.cli import app
from nowcast.live.office import Office, initial, plain, schema
from nowcast.simulate import simulate
from nowcast.simulate.radar import Radar


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
def test_a_watch_takes_the_file_and_options_over_it(tmp_path):
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
