"""Runs on more and more workers, and the report of them."""

from __future__ import annotations

import json
import os
from contextlib import redirect_stderr
from dataclasses import replace
from functools import partial

import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.measure import LEAST, PARTS, WORK, Row, counts, measured, planned, split, sweep
from daskdl.scaling.report import (
    HEADER,
    check_format,
    check_place,
    draw,
    line,
    telling,
    write,
    write_json,
)
from daskdl.train.engines.step import Record
from daskdl.train.watch.history import History
from tests.daskdl.scaling.tiny import TINY, run


def test_weak_and_strong_rows_share_the_run_they_are_compared_with() -> None:
    measured = []

    def measure(workers, samples):
        measured.append((workers, samples))
        return run(workers, samples, 0.1 + samples / workers)

    rows = list(sweep(measure, planned([1, 2, 4], 8, 8)))
    assert measured == [(1, 8), (2, 16), (2, 8), (4, 32), (4, 8)]
    assert [(row.scaling, row.run.workers) for row in rows] == [
        (kind, n) for n in (1, 2, 4) for kind in ("weak", "strong")
    ]
    assert [row.efficiency for row in rows if row.scaling == "weak"] == [1, 1, 1]
    strong = [row.efficiency for row in rows if row.scaling == "strong"]
    assert strong == pytest.approx([1, 8.1 / 8.2, 8.1 / 8.4])


def test_workers_without_samples_are_not_measured() -> None:
    assert planned([1, 4], 2, 3) == [("weak", 1, 2), ("strong", 1, 3), ("weak", 4, 8)]


def test_a_row_comes_as_soon_as_it_is_measured() -> None:
    measured = []

    def measure(workers, samples):
        measured.append(workers)
        return run(workers, samples, 1.0)

    next(sweep(measure, planned([1, 2], 4, 4)))
    assert measured == [1]


@pytest.mark.slow
def test_two_processes_are_measured_and_the_parts_add_up(client) -> None:
    result = measured(client, TINY, 2, 8, 0.05)
    assert (result.workers, result.batch) == (2, 8)
    assert result.iterations >= LEAST
    assert result.rate == pytest.approx(8 / result.seconds)
    assert tuple(result.parts) == PARTS
    assert min(result.parts.values()) >= 0
    assert sum(result.parts.values()) == pytest.approx(result.seconds)
    for part in ("data", "forward", "backward", "reduce", "update"):
        assert result.parts[part] > 0, part
    assert result.busy is not None
    assert result.busy >= 0  # the clock ticks only a few times


def leaving_a_mark(folder, rng, n):
    (folder / str(os.getpid())).touch()
    return TINY.draw(rng, n)


@pytest.mark.parametrize("workers", [1, 2])
def test_as_many_workers_take_part_as_are_asked_for(workers, client, tmp_path) -> None:
    marked = replace(TINY, draw=partial(leaving_a_mark, tmp_path))
    measured(client, marked, workers, 4, 0.0)
    processes = {int(path.name) for path in tmp_path.iterdir()} - {os.getpid()}
    assert len(processes) == workers
    assert processes <= set(client.run(os.getpid).values())


def history(reduce: float = 0.05) -> History:
    """Return groups of one, two and two iterations, which take a second each and some more."""
    made = History()
    for i, (size, took) in enumerate([(1, 20.0), (2, 2.5), (2, 2.25)]):
        records = [
            Record(1.0, 8, 0.1, 0.2, 0.3, 0.1, 10.0 * i + j, reduce, 0.03, idle=0.02)
            for j in range(size)
        ]
        made.add(records, took)
    return made


def test_the_parts_add_up_to_an_iteration() -> None:
    parts = split(history(), groups=[1, 3], seconds=5.0)
    assert tuple(parts) == PARTS
    assert sum(parts.values()) == pytest.approx(5 / 4)
    known = {"data": 0.1, "forward": 0.2, "backward": 0.3, "update": 0.1}
    known |= {"reduce": 0.05, "broadcast": 0.03}
    for name, value in known.items():
        assert parts[name] == pytest.approx(value), name
    assert set(WORK) < set(PARTS)


def test_scheduling_is_what_groups_cost_and_idle_the_rest() -> None:
    parts = split(history(), groups=[1, 3], seconds=5.0)
    # The first iterations of the groups last 1.5 and 1.25 s, the others 1 s, with 0.8 s of clocks.
    # The time between the groups is 0.25 s more.
    assert parts["idle"] == pytest.approx(0.02 + 0.2)
    assert parts["scheduling"] == pytest.approx((0.5 + 0.25 + 0.25) / 4)


def test_all_that_has_no_clock_in_a_graph_is_scheduling() -> None:
    parts = split(history(reduce=0.0), groups=[1, 3], seconds=5.0)
    assert parts["idle"] == pytest.approx(0.02)
    assert parts["scheduling"] == pytest.approx(1.25 - 0.75)


def test_groups_of_one_iteration_leave_nothing_idle_but_the_slowest() -> None:
    parts = split(history(), groups=[1, 2, 3, 4], seconds=5.0)
    assert parts["idle"] == pytest.approx(0.02)


def test_clocks_that_overlap_leave_nothing_between_them() -> None:
    parts = split(history(), groups=[1, 3], seconds=2.0)
    assert parts["scheduling"] == pytest.approx(0)
    assert sum(parts.values()) == pytest.approx(0.5)


def test_efficiency_compares_with_the_fewest_workers() -> None:
    seconds = {(2, 8): 4.0, (4, 16): 8.0, (4, 8): 2.0, (8, 32): 4.0, (8, 8): 2.0}
    rows = sweep(lambda n, samples: run(n, samples, seconds[n, samples]), planned([2, 4, 8], 4, 8))
    rows_of = {kind: [] for kind in ("weak", "strong")}
    for row in rows:
        rows_of[row.scaling].append(row.efficiency)
    assert rows_of == {"weak": [1, 0.5, 1], "strong": [1, 1, 0.5]}


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(1, 1, [1]), (1, 8, [1, 2, 4, 8]), (1, 6, [1, 2, 4, 6]), (8, 256, [8, 16, 32, 64, 128, 256])],
)
def test_each_number_is_twice_the_one_before_up_to_the_last(first, last, expected) -> None:
    assert counts(first, last) == expected


ROW = Row("strong", run(2, 16, 0.36, busy=0.5), 0.875)


def test_a_line_has_a_value_below_each_name() -> None:
    names, values = HEADER.split(), line(ROW).split()
    columns = dict(zip([n for n in names if n != "%"], values, strict=True))
    assert columns["workers"] == "2"
    assert columns["scaling"] == "strong"
    assert columns["ms"] == "360.00"
    assert (columns["data"], columns["idle"]) == ("10.00", "80.00")
    assert (columns["effic."], columns["busy"]) == ("87.5", "50")
    assert len(HEADER) == len(line(ROW)) == len(line(Row("weak", run(1, 8, 0.1), 1.0)))


def test_a_file_has_settings_machines_and_rows(tmp_path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("an older one")
    write_json(path, {"settings": {"model": "tiny"}, "machines": [{"cores": 2}]}, [ROW])
    rows_read = json.loads(path.read_text())
    assert rows_read["settings"] == {"model": "tiny"}
    assert rows_read["machines"] == [{"cores": 2}]
    (row,) = rows_read["rows"]
    assert sum(row[f"{part}_seconds"] for part in PARTS) == pytest.approx(row["seconds"])
    assert (row["efficiency"], row["samples_per_second"]) == (0.875, pytest.approx(16 / 0.36))


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path) -> None:
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


def test_a_format_that_cannot_be_written_is_refused(tmp_path) -> None:
    check_format(tmp_path / "scaling.svg")
    with pytest.raises(SettingsError, match=r"ends in one of .*png.*, found '.*scaling.doc'"):
        check_format(tmp_path / "scaling.doc")


def test_a_line_says_what_is_measured(capsys) -> None:
    with telling("run 1 of 3"):
        assert capsys.readouterr().err == "run 1 of 3\n"
    with telling("run 2 of 3", wanted=False):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_the_line_apart_from_results(capsys, monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    here, there = os.openpty()
    with os.fdopen(there, "w") as terminal, redirect_stderr(terminal):
        with telling("run 1 of 3"):
            pass
        terminal.write("that was all")
        terminal.flush()
        shown = b""
        while b"that was all" not in shown:  # it comes in pieces
            shown += os.read(here, 4096)
        assert b"run 1 of 3" in shown
    os.close(here)
    assert capsys.readouterr().out == ""
