from __future__ import annotations

import json

import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.report import HEADER, check_place, line, replacing, write_json
from daskdl.scaling.split import PARTS
from daskdl.scaling.sweep import Row
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
