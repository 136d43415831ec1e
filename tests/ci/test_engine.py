"""Benchmarks of the engines: synchronization, control, and the model of hosts."""

from __future__ import annotations

import json

import pytest

from ci.bench import engine
from ci.bench.engine import GANG, Row, as_json
from ci.performance_tables import MESSAGE, predicted

ROWS = [
    Row(megabytes, name, median, median / 2, median / 20.0)
    for megabytes in (1, 28)
    for name, median in (("gloo", 20.0), ("socket", 15.0), (GANG, 10.0))
]


def test_lines_are_beside_gloo_and_the_socket() -> None:
    lines = as_json(ROWS)
    assert [line["name"] for line in lines] == [
        f"synchronization/{size} MB/{GANG}" for size in (1, 28)
    ]
    line = lines[1]
    assert (line["ours_ms"], line["peer_ms"], line["ratio"], line["socket_ms"]) == (10, 20, 2, 15)
    assert line["percent_of_1500_ms"] == 10 / 15


@pytest.mark.slow
def test_the_cost_of_control_is_measured(tmp_path, capsys):
    file = tmp_path / "rows.json"
    few = {"engines": "gang", "workers": 2, "seconds": 0.01, "k": 2, "groups": 1, "settle": 0}
    options = [text for name, value in few.items() for text in (f"--{name}", str(value))]
    assert engine.main(["--part", "control", *options, "--json", str(file)]) == 0
    (row,) = json.loads(file.read_text())
    assert (row["engine"], row["workers"], row["iterations"]) == ("gang", 2, 2)
    assert row["scheduler"] > 0
    assert row["driver"] > 0
    assert row["rest"] > 0
    # Two tasks; neither samples nor weights.
    assert 0.1 < row["kilobytes"] < 10
    assert "gang         2   2.0" in capsys.readouterr().out


def test_the_model_is_the_one_that_was_written_down():
    # 28 MB over 10 Gbit/s: 3.2 % of 1.5 s at 32 hosts, and 3.4 % at 256.
    assert predicted(32, 28, 10_000) / 1500 == pytest.approx(0.032, abs=0.0005)
    assert predicted(256, 28, 10_000) / 1500 == pytest.approx(0.034, abs=0.0005)


def test_a_small_vector_takes_its_messages():
    assert predicted(8, 0, 1000) == pytest.approx(6 * MESSAGE)
