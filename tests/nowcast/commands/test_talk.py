"""Words and data, each to its stream; progress on a terminal and in a log."""

from __future__ import annotations

import io
import json
import sys

import pytest

from nowcast.commands import talk


def test_words_go_to_standard_error_and_data_to_standard_output(capsys):
    talk.say("3 frames written")
    talk.print_json({"frames": 3, "leads": ["10", None]})
    out, err = capsys.readouterr()
    assert err == "3 frames written\n"
    assert json.loads(out) == {"frames": 3, "leads": ["10", None]}


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(talk.time, "monotonic", lambda: clock[0])
    with talk.progress_bar("ingest") as advance:
        for done in range(1, 9):
            clock[0] += talk.INTERVAL / 2.5
            advance(done, 8)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["ingest: 3 of 8", "ingest: 6 of 8"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_on_standard_error(capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with talk.progress_bar("verify") as advance:
        advance(3, 8)
        advance(8, 8)
    assert "verify" in terminal.getvalue()
    assert "8/8" in terminal.getvalue()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_an_error_below_the_bar_is_passed_on(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    with pytest.raises(KeyError), talk.progress_bar("verify"):
        raise KeyError("x")
