"""The examples reach what they promise: each is run with its data, its last line is kept."""

from __future__ import annotations

import json

import pytest

from ci import realdata
from ci.bench import examples


def test_a_row_has_the_last_line_and_the_time(tmp_path, monkeypatch, capsys):
    (tmp_path / "one.py").write_text("import sys\nprint('much')\nprint(*sys.argv[1:])\n")
    monkeypatch.setattr(examples, "ROOT", tmp_path)
    monkeypatch.setattr(examples, "PROGRAMS", ("one.py accuracy 0.5", "two.py"))
    examples.main(["--only", "one", "--json", str(tmp_path / "rows.json")])
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert (row["program"], row["said"]) == ("one.py accuracy 0.5", "accuracy 0.5")
    assert 0 < row["seconds"] < 300
    assert "accuracy 0.5" in capsys.readouterr().out


def test_a_program_that_fails_is_named_with_what_it_said(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("raise ValueError('no pictures')\n")
    monkeypatch.setattr(examples, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match=r"one\.py a: (?s:.*)no pictures"):
        examples.result("one.py a", tmp_path)


def test_data_that_pip_cannot_download_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(realdata, "downloaded", lambda requirement, folder: None)
    with pytest.raises(RuntimeError, match=r"recbole==1\.2\.1: expected that pip can download it"):
        examples.put_data([f"ncf.py {examples.RATINGS}"], tmp_path)
    examples.put_data(["ncf.py generated"], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("program", examples.PROGRAMS)
def test_the_programs_are_there(program):
    assert (examples.ROOT / program.split()[0]).is_file()
