"""The process that reads: results, exceptions, crashes, endless loops and too much memory."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar import isolated
from nowcast.radar.isolated import call


def endless() -> None:
    while True:
        pass


def crash() -> None:
    os.abort()


def chatter() -> str:
    os.write(1, b"a library prints")
    return "answer"


class Unreadable:
    """An object that can be pickled but not unpickled."""

    def __reduce__(self):
        return divmod, (1, 0)


@pytest.mark.slow
def test_an_answer_that_cannot_be_read_leaves_nothing_for_the_next_call():
    with pytest.raises(ZeroDivisionError):
        call("a", Unreadable)
    assert call("b", abs, -3) == 3


@pytest.mark.slow
def test_results_and_exceptions_come_back():
    np.testing.assert_array_equal(call("a", np.arange, 5), np.arange(5))
    with pytest.raises(ZeroDivisionError):
        call("a", divmod, 1, 0)
    assert call("a", chatter) == "answer"
    assert call("a", os.getpid) == call("a", os.getpid) != os.getpid()


@pytest.mark.kills
@pytest.mark.parametrize("function", [endless, crash])
def test_a_process_that_hangs_or_crashes_is_the_files_damage_and_the_next_call_works(
    monkeypatch, function
):
    monkeypatch.setattr(isolated, "SECONDS", 1)
    before = call("a", os.getpid)
    with pytest.raises(DataError, match=r"b\.h5: damaged file: .* did not end within 1 s"):
        call("b.h5", function)
    assert call("a", os.getpid) != before


def test_more_memory_than_allowed_is_an_error_and_no_crash():
    with pytest.raises(MemoryError):
        call("a", np.ones, 1 << 31)
    assert call("a", abs, -1) == 1


def test_threads_take_turns():
    answers: dict[int, int] = {}

    def ask(number):
        answers[number] = call("a", abs, -number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: number for number in range(8)}
