"""The report of a sweep: lines, data, picture, and progress meanwhile."""

from __future__ import annotations

import json
import os
from contextlib import redirect_stderr

import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.report import (
    HEADER,
    check_format,
    check_place,
    draw,
    line,
    replacing,
    telling,
    write,
    write_json,
)
from daskdl.scaling.split import PARTS
from daskdl.scaling.sweep import Row, planned, sweep
from tests.daskdl.scaling.tiny import run

ROW = Row("strong", run(2, 16, 0.36, busy=0.5), 0.875)


def test_a_line_has_a_value_below_each_name() -> None:
    names, values = HEADER.split(), line(ROW).split()
    found = dict(zip([n for n in names if n != "%"], values, strict=True))
    assert found["workers"] == "2"
    assert found["scaling"] == "strong"
    assert found["ms"] == "360.00"
    assert (found["data"], found["idle"]) == ("10.00", "80.00")
    assert (found["effic."], found["busy"]) == ("87.5", "50")
    assert len(HEADER) == len(line(ROW)) == len(line(Row("weak", run(1, 8, 0.1), 1.0)))


def test_a_file_has_settings_machines_and_rows(tmp_path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("an older one")
    write_json(path, {"settings": {"model": "tiny"}, "machines": [{"cores": 2}]}, [ROW])
    found = json.loads(path.read_text())
    assert found["settings"] == {"model": "tiny"}
    assert found["machines"] == [{"cores": 2}]
    (row,) = found["rows"]
    assert sum(row[f"{part}_seconds"] for part in PARTS) == pytest.approx(row["seconds"])
    assert (row["efficiency"], row["samples_per_second"]) == (0.875, pytest.approx(16 / 0.36))


def test_nothing_half_written_takes_the_place_of_a_file(tmp_path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("whole")

    def interrupted() -> None:
        with replacing(path) as beside:
            beside.write_text("ha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [p.name for p in tmp_path.iterdir()] == ["rows.json"]
    assert path.read_text() == "whole"


def test_a_place_that_cannot_be_written_to_is_told_before(tmp_path) -> None:
    check_place("json", None)
    check_place("json", tmp_path / "rows.json")
    for path in (tmp_path, tmp_path / "nowhere" / "rows.json"):
        with pytest.raises(SettingsError, match="json: expected a file in a folder that can be"):
            check_place("json", path)


@pytest.mark.slow
def test_bars_are_as_high_as_iterations_are_long(tmp_path) -> None:
    plan = planned([1, 2, 4], 8, 8)
    rows = list(sweep(lambda n, samples: run(n, samples, 0.1 * samples / n), plan))
    figure = draw(rows, "tiny")
    left, right = figure.axes
    tops = [patch.get_y() + patch.get_height() for patch in left.patches]
    assert max(tops) == pytest.approx(800)
    assert len(left.patches) == 3 * len(PARTS)
    weak, strong, *_ = right.get_lines()
    assert [*weak.get_xdata()] == [1, 2, 4]
    assert [*strong.get_ydata()] == pytest.approx([100, 100, 100])
    path = tmp_path / "scaling.png"
    write(figure, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["scaling.png"]


def test_a_format_that_cannot_be_written_is_told_before(tmp_path) -> None:
    check_format(tmp_path / "scaling.svg")
    with pytest.raises(SettingsError, match=r"ends in one of .*png.*, found '.*scaling.doc'"):
        check_format(tmp_path / "scaling.doc")


def test_a_line_says_what_is_measured(capsys) -> None:
    with telling("run 1 of 3"):
        assert capsys.readouterr().err == "run 1 of 3\n"
    with telling("run 2 of 3", wanted=False):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_it_and_keeps_results_apart(capsys, monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    here, there = os.openpty()
    with os.fdopen(there, "w") as terminal, redirect_stderr(terminal):
        with telling("run 1 of 3"):
            pass
        terminal.write("that was all")
        terminal.flush()
        shown = b""
        while b"that was all" not in shown:  # which comes in pieces
            shown += os.read(here, 4096)
        assert b"run 1 of 3" in shown
    os.close(here)
    assert capsys.readouterr().out == ""
