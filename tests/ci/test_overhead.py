"""The overhead benchmark: both sides learn, and the table has every case."""

from __future__ import annotations

import json

import pytest

from ci.bench import overhead


def test_steps_of_both_sides_lessen_the_loss():
    pytest.importorskip("torch")
    steps = [case for case in overhead.cases() if case.name.startswith("step/")]
    for case in steps:
        for step in (case.ours, *case.peers.values()):
            losses = [step() for _ in range(30)]
            assert losses[-1] < losses[0]
    assert len(steps) == len(overhead.METHODS)


@pytest.mark.slow
def test_writes_a_row_for_each_case(tmp_path, capsys):
    pytest.importorskip("torch")
    file = tmp_path / "rows.json"
    overhead.main(["--seconds", "0", "--json", str(file)])
    rows = json.loads(file.read_text())
    assert [row["name"] for row in rows] == [case.name for case in overhead.cases()]
    assert all(row["threads"] == 1 and row["ratio"] > 0 for row in rows)
    assert "geometric mean" in capsys.readouterr().out
