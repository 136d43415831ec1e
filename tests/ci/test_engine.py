"""The benchmark of synchronization: what it writes and draws of its rows."""

from __future__ import annotations

from pathlib import Path

from ci.bench.engine import GANG, Row, as_json, picture

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
