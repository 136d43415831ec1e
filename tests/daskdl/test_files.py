"""Files: a lock has one holder at a time, even if other processes remove its file or die."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from daskdl import files

SPAWN = multiprocessing.get_context("spawn")


def _take_turns(path: Path, counter: Path, barrier: object, turns: int) -> None:
    barrier.wait()
    done = 0
    while done < turns:
        try:
            with files.locked(path):
                # Two at once would both read the same number.
                counter.write_text(str(int(counter.read_text()) + 1))
                done += 1
        except files.HeldError:
            continue


@pytest.mark.slow
def test_no_two_hold_a_lock_at_once(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    barrier = SPAWN.Barrier(3)
    arguments = (tmp_path / "lock", counter, barrier, 300)
    processes = [SPAWN.Process(target=_take_turns, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert counter.read_text() == "900"
    assert [entry.name for entry in tmp_path.iterdir()] == ["counter"]


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock, handles = tmp_path / "lock", fcntl.flock, []

    def slow(handle: int, how: int) -> None:
        if not handles:  # the holder leaves between our open and our lock, and another comes
            path.unlink()
            handles.append(os.open(path, os.O_RDWR | os.O_CREAT))
            flock(handles[0], how)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    with pytest.raises(files.HeldError), files.locked(path):
        pass
    os.close(*handles)
    with files.locked(path):
        pass


def _die_with(path: Path, ready: object) -> None:
    with files.locked(path):
        ready.set()
        signal.pause()


@pytest.mark.kills
def test_a_killed_holder_is_named_while_it_lives_and_leaves_the_lock(tmp_path: Path) -> None:
    path, ready = tmp_path / "lock", SPAWN.Event()
    process = SPAWN.Process(target=_die_with, args=(path, ready))
    process.start()
    ready.wait()
    with pytest.raises(files.HeldError, match=f"^process {process.pid} on "), files.locked(path):
        pass
    process.kill()
    process.join()
    with files.locked(path):
        pass


def test_a_file_system_without_locks_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with files.locked(tmp_path / "lock"):
        pass
    assert "no locks here ([Errno 38] Function not implemented); see that only one" in caplog.text


def test_written_files_are_read_back(tmp_path: Path) -> None:
    files.write_synced(tmp_path / "a", b"rain")
    (tmp_path / "b").mkdir()
    files.write_synced(tmp_path / "b" / "c", b"hail")
    files.sync_trees([tmp_path])
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "b" / "c").read_bytes()) == (
        b"rain",
        b"hail",
    )


def test_a_folder_that_cannot_be_written_is_named_itself():
    with pytest.raises(OSError, match=r"'/proc'$"), files.replacing(Path("/proc/forecast.nc")):
        pass
