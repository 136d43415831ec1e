"""The benchmark of control: its row, its picture, and that it is reached by the engines'."""

from __future__ import annotations

import json

import pytest

from ci.bench import engine


@pytest.mark.slow
def test_the_cost_of_control_is_measured(tmp_path, capsys):
    file, picture = tmp_path / "rows.json", tmp_path / "rows.png"
    few = [
        "--engines",
        "gang",
        "--workers",
        "2",
        "--seconds",
        "0.01",
        "-k",
        "2",
        "--groups",
        "1",
        "--settle",
        "0",
    ]
    assert engine.main(["--part", "control", *few, "--json", str(file), "--png", str(picture)]) == 0
    (row,) = json.loads(file.read_text())
    assert (row["engine"], row["workers"], row["iterations"]) == ("gang", 2, 2)
    assert row["scheduler"] > 0
    assert row["driver"] > 0
    assert row["rest"] > 0
    # Two tasks; neither samples nor weights.
    assert 0.1 < row["kilobytes"] < 10
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "gang         2   2.0" in capsys.readouterr().out
