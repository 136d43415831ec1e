"""Figures: what benchmarks wrote is kept with its command, and whole."""

from __future__ import annotations

import json
import os

import pytest

from ci import figures


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "figures")
    monkeypatch.setattr(figures, "_machine", lambda: {"cores": 2})
    return tmp_path / "figures"


def test_rows_of_several_files_are_kept_with_command_and_machine(folder, tmp_path):
    for i in range(2):
        (tmp_path / f"{i}.json").write_text(json.dumps([{"name": f"case {i}"}]))
        os.utime(tmp_path / f"{i}.json", (0, 86_400 * (i + 1)))
    figures.keep("kernels", [tmp_path / "0.json", tmp_path / "1.json"])
    found = figures.figure("kernels")
    assert found["command"] == figures.COMMANDS["kernels"]
    assert found["machine"] == {"cores": 2}
    assert found["date"] == "1970-01-03"
    assert found["rows"] == [{"name": "case 0"}, {"name": "case 1"}]
    assert [file.name for file in folder.iterdir()] == ["kernels.json"]
    assert figures.figure("training") is None


def test_a_measured_benchmark_is_run_and_kept(folder, monkeypatch):
    written = "import sys; open(sys.argv[-1], 'w').write('[{\"name\": 1}]')"
    program = folder.parent / "written.py"
    program.write_text(written)
    monkeypatch.setitem(figures.COMMANDS, "kernels", f"python {program} --quick")
    figures.measure("kernels")
    assert figures.figure("kernels")["rows"] == [{"name": 1}]


def test_published_figures_name_their_source():
    for found in figures.published().values():
        assert len(found["source"]) > 20
        assert found["what"]
