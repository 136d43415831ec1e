"""Tests that kill processes are marked, and ``--left-out`` runs the tests that were left out."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]
#: Names with which a test ends or stops a process.
KILLING = {"SIGKILL", "SIGSTOP", "Kill", "die", "kill", "killpg", "restart_workers", "stopped"}
#: Tests that send themselves a signal that ends nothing.
SPARED = {
    "test_an_interruption_comes_at_the_end",
    "test_hosts_are_cleared_away_when_a_signal_ends_the_program",
}


def unmarked(code: str) -> list[str]:
    """Return the names of tests that use a name in KILLING without the mark ``kills``."""
    return [
        node.name
        for node in ast.parse(code).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and node.name not in SPARED
        and KILLING & {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node)}
        and not any("kills" in ast.unparse(mark) for mark in node.decorator_list)
    ]


def test_tests_that_kill_processes_bear_the_mark():
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        code = path.read_text(encoding="utf-8")
        if "pytestmark" not in code:
            assert not unmarked(code), path


def test_a_forgotten_mark_is_found():
    code = "def test_a():\n    os.kill(1, 9)\n\n@pytest.mark.kills\ndef test_b():\n    die()\n"
    assert unmarked(code) == ["test_a"]


TESTS = """
    import pytest

    def test_passes(): pass
    def test_fails(): assert False
    @pytest.mark.xfail(reason="known")
    def test_fails_as_known(): assert False
    @pytest.mark.slow
    def test_slow(): pass
    def test_of_a_peer(): pytest.importorskip("PEER")
"""


def test_a_second_run_takes_what_the_first_left_out(pytester):
    shutil.copy(ROOT / "tests" / "conftest.py", pytester.path)
    pytester.makeini("[pytest]\naddopts = -m 'not slow' -p no:randomly\nmarkers = slow")
    pytester.makepyfile(test_first=TESTS.replace("PEER", "no_such_package"))
    first = pytester.runpytest_inprocess()
    first.assert_outcomes(passed=1, failed=1, xfailed=1, skipped=1, deselected=1)
    # The tests that failed may run again without an effect on what is left out.
    pytester.runpytest_inprocess("--last-failed").assert_outcomes(failed=1)
    pytester.makepyfile(test_first=TESTS.replace("PEER", "pytest"))
    second = pytester.runpytest_inprocess("-m", "", "--left-out", "-v")
    second.assert_outcomes(passed=2, deselected=3)
    second.stdout.fnmatch_lines(["*test_slow PASSED*", "*test_of_a_peer PASSED*"])
    nothing = pytester.runpytest_inprocess("-m", "", "--left-out")
    nothing.assert_outcomes(deselected=5)
    everything = pytester.runpytest_inprocess("-m", "")
    everything.assert_outcomes(passed=3, failed=1, xfailed=1)
