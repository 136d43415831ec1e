"""The table of file sizes and its limit."""

from __future__ import annotations

import subprocess

import pytest

from ci import sizes


@pytest.fixture
def project(tmp_path):
    """Two folders under git: three files of 2, 4 and 6 lines."""
    (tmp_path / "daskdl" / "ops").mkdir(parents=True)
    for name, lines in (("a.py", 2), ("b.py", 4), ("ops/c.py", 6)):
        (tmp_path / "daskdl" / name).write_text("x = 1\n" * lines)
    (tmp_path / "daskdl" / "notes.txt").write_text("x\n" * 999)
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_table_counts_by_folder(project, capsys):
    (project / "daskdl" / "a.py").write_text("x = 1\n" * 5)
    assert sizes.main(["HEAD"], project) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["daskdl"] == ["2", "9", "4", "5", "+3", "-0"]
    assert rows["daskdl/ops"] == ["1", "6", "6", "6", "+0", "-0"]
    assert rows["all"] == ["3", "15", "5", "6", "+3", "-0"]


def test_file_above_the_limit_fails_by_name(project, capsys):
    path = project / "daskdl" / "ops" / "c.py"
    path.write_text("x = 1\n" * sizes.LIMIT)
    assert sizes.main(["HEAD"], project) == 0
    path.write_text("x = 1\n" * (sizes.LIMIT + 1))
    assert sizes.main(["HEAD"], project) == 1
    assert "daskdl/ops/c.py: expected at most 400 lines, found 401" in capsys.readouterr().err


def test_without_the_base_there_is_a_table_all_the_same(project, capsys):
    assert sizes.main(["origin/main"], project) == 0
    assert "+0 -0" in capsys.readouterr().out


def test_the_project_has_files():
    assert len(sizes.source_files()) > 50
