"""Command lines end with exit codes, streams kept apart, tracebacks on demand."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer

from daskdl import __version__, errors
from daskdl.console import application, argument_parser, natural, output, positive, run, script


def demo():
    app = application("demo", "Shows how commands end.")

    @app.command()
    def end(how: str, times: Annotated[int, typer.Option()] = 1) -> None:
        """Ends in one of several ways.

        They are those of
        this module's tests.
        """
        if how == "interrupt":
            raise KeyboardInterrupt
        if how == "terminate":
            signal.raise_signal(signal.SIGTERM)
        if how == "missing":
            Path("/nowhere/at/all").read_bytes()
        if how == "full":
            Path("/dev/full").write_bytes(b"1")
        if how == "full for h5py":
            raise OSError(errno.ENOSPC, "Unable to create file (time = Mon Nov 30\n, errno = 28)")
        if how == "exit":
            raise typer.Exit(7)
        if how == "package":
            importlib.import_module("a_package.that_is_not_there")
        kind = getattr(errors, how, None) or {"bug": ZeroDivisionError}.get(how)
        if kind:
            raise kind("a.nc: expected 2 axes, found 3; cut it")
        typer.echo(how * times)

    return app


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("ShapeError", 3),
        ("SettingsError", 2),
        ("DataError", 3),
        ("ClusterError", 4),
        ("CheckpointError", 5),
        ("MissingExtraError", 2),
        ("DaskdlError", 1),
    ],
)
def test_our_errors_are_one_line_and_end_with_their_code(how, code, capsys):
    assert run(demo(), ["end", how]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "demo: a.nc: expected 2 axes, found 3; cut it\n"


def test_a_package_that_is_not_installed_is_named_with_the_command(capsys):
    assert run(demo(), ["end", "package"], install="demo[all]") == 2
    err = capsys.readouterr().err
    assert err == (
        "demo: expected the package a_package, found it not installed; pip install 'demo[all]'\n"
    )


def test_a_bug_is_one_line_that_says_how_to_see_more(capsys):
    assert run(demo(), ["end", "bug"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("demo: internal error: ZeroDivisionError: a.nc")
    assert err.endswith("`demo --debug ...` shows where\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--debug", "end", "bug"], ["end", "bug", "--debug"]])
def test_debug_shows_the_traceback_in_any_place(arguments, capsys):
    assert run(demo(), arguments) == 1
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err
    assert err.endswith(
        "demo: internal error: ZeroDivisionError: a.nc: expected 2 axes, found 3; cut it\n"
    )


def test_debug_after_two_dashes_is_a_value(capsys):
    assert run(demo(), ["end", "--", "--debug"]) == 0
    assert capsys.readouterr().out == "--debug\n"


def test_a_path_that_cannot_be_used_is_named(capsys):
    assert run(demo(), ["end", "missing"]) == 3
    assert capsys.readouterr().err == "demo: /nowhere/at/all: No such file or directory\n"
    for how in ("full", "full for h5py"):
        assert run(demo(), ["end", how]) == 3
        assert capsys.readouterr().err == "demo: what is written: No space left on device\n"


def test_interrupt_ends_with_130(capsys):
    assert run(demo(), ["end", "interrupt"]) == 130
    assert capsys.readouterr().err == "demo: interrupted\n"


def test_sigterm_ends_with_143_and_its_handler_is_restored(capsys):
    assert run(demo(), ["end", "terminate"]) == 143
    assert capsys.readouterr() == ("", "demo: terminated\n")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_another_handler_of_sigterm_is_kept(capsys, monkeypatch):
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    try:
        assert run(demo(), ["end", "terminate"]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("DataError", 3, "a.nc: expected 2 axes, found 3; cut it"),
        ("missing", 3, "/nowhere/at/all: No such file or directory"),
        ("terminate", 143, "terminated"),
    ],
)
def test_a_script_reports_user_errors_as_the_programs_do(how, code, message, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/some/where/demo.py"])

    def main():
        return typer.main.get_command(demo()).main(["end", how], standalone_mode=False)

    with pytest.raises(SystemExit) as end:
        script(main)
    assert end.value.code == code
    assert capsys.readouterr().err == f"demo.py: {message}\n"
    monkeypatch.setenv("DASKDL_TRACEBACK", "1")
    with pytest.raises((errors.DataError, FileNotFoundError, SystemExit)) as raised:
        script(main)
    assert (raised.type is SystemExit) is (how == "terminate")


def test_an_interrupted_script_ends_by_the_signal_with_one_line(tmp_path):
    """So that a shell's loop around it ends too; a fit has a line of its own."""
    code = "import signal; from daskdl.console import script\n"
    # Programs of a shell's background ignore the signal otherwise.
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "script(lambda: signal.raise_signal(signal.SIGINT))"
    (tmp_path / "demo.py").write_text(code)
    command = [sys.executable, str(tmp_path / "demo.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "demo.py: interrupted\n")
    environment = os.environ | {"DASKDL_TRACEBACK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" in done.stderr


def test_the_help_of_a_script_has_its_lines_and_defaults():
    parser = argument_parser("One line.\n    Another.")
    parser.add_argument("--size", default=7, help="pixels")
    parser.add_argument("--fast", action="store_true", help="hurry")
    text = parser.format_help()
    assert "One line.\n    Another." in text
    assert "pixels (default: 7)" in text
    assert "hurry\n" in text


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (natural, "-1", "expected a whole number of at least 0, found '-1'"),
        (positive, "0", "expected a whole number of at least 1, found '0'"),
        (positive, "1.5", "expected a whole number of at least 1, found '1.5'"),
        (output, "/no/a.png", "expected a file in an existing folder, found '/no/a.png'; make the"),
    ],
)
def test_arguments_of_a_script_are_refused_before_it_begins(kind, text, message, capsys):
    parser = argument_parser("Text.")
    parser.add_argument("--x", type=kind)
    with pytest.raises(SystemExit) as end:
        parser.parse_args(["--x", text])
    assert end.value.code == 2
    assert f"argument --x: {message}" in capsys.readouterr().err
    assert parser.parse_args(["--x", "7"]).x in (7, Path("7"))


def test_a_bug_of_a_script_is_raised():
    with pytest.raises(ZeroDivisionError):
        script(lambda: 1 // 0)


def test_a_commands_own_exit_code_is_kept():
    assert run(demo(), ["end", "exit"]) == 7


def test_results_go_to_standard_output(capsys):
    assert run(demo(), ["end", "well", "--times", "2"]) == 0
    assert capsys.readouterr() == ("wellwell\n", "")


@pytest.mark.parametrize(
    "arguments", [["end"], ["end", "x", "--times", "many"], ["nothing"], ["end", "x", "--nothing"]]
)
def test_usage_errors_end_with_2_on_standard_error(arguments, capsys):
    assert run(demo(), arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: demo" in err


def test_arguments_of_the_process_are_the_default(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["/bin/demo", "--version"])
    assert run(demo()) == 0
    assert capsys.readouterr().out == f"demo {__version__}\n"


def test_help_names_the_shared_options(capsys):
    assert run(demo(), ["--help"]) == 0
    out = capsys.readouterr().out
    for text in ("Shows how commands end.", "--debug", "--version", "end"):
        assert text in out


def test_help_fills_the_lines_of_a_paragraph(capsys):
    assert run(demo(), ["end", "--help"]) == 0
    assert "They are those of this module's tests." in capsys.readouterr().out
