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
    (tmp_path / "ci").mkdir()
    sizes.write_budget(tmp_path)
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
    sizes.write_budget(project)
    assert sizes.main(["HEAD"], project) == 0
    path.write_text("x = 1\n" * (sizes.LIMIT + 1))
    assert sizes.main(["HEAD"], project) == 1
    assert "daskdl/ops/c.py: expected at most 400 lines, found 401" in capsys.readouterr().err


def test_a_base_that_is_missing_still_gives_a_table(project, capsys):
    assert sizes.main(["origin/main"], project) == 0
    assert "+0 -0" in capsys.readouterr().out


def test_a_room_above_its_budget_fails_by_name(project, capsys):
    tests = project / "tests" / "daskdl" / "ops"
    tests.mkdir(parents=True)
    (tests / "test_c.py").write_text("x = 1\n" * 13)
    sizes.write_budget(project)  # 20 lines: 13 and one per cent, rounded up to tens
    assert sizes.main(["HEAD"], project) == 0
    assert "product 12, tests 13, examples and ci 0, all 25 lines in 4" in capsys.readouterr().out
    (tests / "test_d.py").write_text("x = 1\n" * 9)
    assert sizes.main(["HEAD"], project) == 1
    (problem,) = capsys.readouterr().err.splitlines()
    assert problem == (
        "tests of daskdl/ops: expected at most 20 lines, found 22, 2 above the budget; "
        "take some out, or change its line in ci/sizes.txt on purpose"
    )


def test_new_and_removed_rooms_need_a_change_of_the_budget(project, capsys):
    (project / "daskdl" / "ops").rename(project / "daskdl" / "operations")
    assert sizes.main(["HEAD"], project) == 1
    assert capsys.readouterr().err.splitlines() == [
        "ci/sizes.txt: daskdl/ops is no room; take its line out",
        "ci/sizes.txt: expected a line for daskdl/operations, found none; add it on purpose",
    ]
    sizes.main(["--budget"], project)
    assert sizes.main(["HEAD"], project) == 0


def test_the_project_has_files():
    assert len(sizes.source_files()) > 50
