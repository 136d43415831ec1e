from __future__ import annotations

import os
from contextlib import redirect_stderr

from daskdl.scaling.progress import telling


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
