"""The benchmark of memory: what it reads of every process, and its slope."""

from __future__ import annotations

import json

import pytest

from ci.bench import engine_memory
from daskdl.train import History


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
