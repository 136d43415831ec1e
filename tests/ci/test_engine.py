"""Benchmarks of the engines: synchronization, control, memory, hosts and their links."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from ci.bench import engine, engine_hosts, engine_links, engine_memory
from ci.bench.engine import GANG, Row, as_json, picture
from ci.bench.engine_hosts import conclusions, slope
from ci.bench.engine_links import MESSAGE, moved, predicted
from daskdl.train import History

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


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    picture(ROWS, tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


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


def test_a_slope_is_growth_in_a_thousand_iterations():
    assert engine_memory.slope([100, 200, 300], [7.0, 7.5, 8.0]) == pytest.approx(5)
    assert engine_memory.slope([100], [7.0]) == 0


@pytest.mark.long
def test_what_every_process_holds_is_read(tmp_path, capsys):
    file = tmp_path / "rows.json"
    few = ["--engines", "graph", "--iterations", "8", "--samples", "4", "--json", str(file)]
    assert engine_memory.main(few) == 0
    rows = {row["what"]: row for row in json.loads(file.read_text())}
    assert tuple(rows) == engine_memory.COLUMNS
    assert rows["tasks"]["end"] > 0
    assert all(rows[name]["end"] > 10 for name in engine_memory.COLUMNS[1:])
    assert "graph: 0 tasks after the fit" in capsys.readouterr().out


def test_bytes_of_a_history_are_those_of_its_numbers():
    history = History()
    for column in history._columns.values():
        column.extend(float(i) for i in range(100))
    each = engine_memory.history_bytes(history) / len(history._columns)
    assert 32 <= each < 36  # a number's 24 bytes and a place for it


def host_row(hosts: int, measured: float, busy: float = 0.2) -> engine_hosts.Row:
    return engine_hosts.Row(
        1000, hosts, 28, moved(hosts, 28), predicted(hosts, 28, 1000), measured, busy
    )


def test_the_slope_is_that_of_what_is_moved():
    rows = [host_row(n, 3 + 9 * moved(n, 28)) for n in (2, 4, 8)]
    assert slope(rows) == pytest.approx((3, 9))
    (line,) = conclusions(rows)
    assert "9.00 ms a MB moved (model 8.55, ratio 1.05)" in line
    busy = [host_row(2, 240), host_row(4, 900, busy=0.99)]
    assert "the cores are the limit" in conclusions(busy)[0]
    small = [engine_hosts.Row(1000, n, 1e-4, moved(n, 1e-4), 0.4, 0.4 + n, 0.2) for n in (2, 4, 8)]
    assert "no slope of the network" in conclusions(small)[0]


def test_another_user_is_refused_in_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert engine_hosts.main([]) == 2
    said = capsys.readouterr()
    sentence = "network namespaces: expected to be root, found another user; run it with sudo"
    assert said.err.splitlines() == [sentence]
    assert not said.out


def names() -> str:
    commands = (["ip", "netns"], ["ip", "link"])
    return "".join(subprocess.run(c, capture_output=True, text=True).stdout for c in commands)


@pytest.mark.skipif(engine_links.missing() is not None, reason="needs root and iproute2")
def test_hosts_are_cleared_away_when_a_signal_ends_the_program():
    try:
        with engine_links.hosts(2):
            engine_links.shape(2, 1000, 0.1)
            assert engine_links.name(1) in names()
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 0)
            pytest.fail("the signal went unnoticed")
    except RuntimeError as error:
        pytest.skip(f"no namespaces on this machine: {error}")
    except KeyboardInterrupt:
        pass
    assert engine_links.BRIDGE not in names()
    assert "daskdl-veth" not in names()


def test_the_model_is_the_one_that_was_written_down():
    # 28 MB over 10 Gbit/s: 3.2 % of 1.5 s at 32 hosts, and 3.4 % at 256.
    assert predicted(32, 28, 10_000) / 1500 == pytest.approx(0.032, abs=0.0005)
    assert predicted(256, 28, 10_000) / 1500 == pytest.approx(0.034, abs=0.0005)


def test_a_small_vector_takes_its_messages():
    assert predicted(8, 0, 1000) == pytest.approx(6 * MESSAGE)
    assert moved(2, 28) == 28
