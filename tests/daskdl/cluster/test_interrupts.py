from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from daskdl.cluster.interrupts import interrupts_later


@pytest.mark.parametrize("with_another_thread", [False, True])
def test_an_interruption_comes_at_the_end(with_another_thread: bool) -> None:
    came, over = [], threading.Event()
    other = threading.Thread(target=over.wait)
    if with_another_thread:  # which lets signals through
        other.start()

    def interrupted() -> None:
        with interrupts_later():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
            came.append("work")
        came.append("more")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # others may have set theirs
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
        over.set()
    assert came == ["work"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_processes_that_start_meanwhile_do_not_see_it() -> None:
    with interrupts_later():
        process = subprocess.Popen(
            [sys.executable, "-c", "print(1, flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    process.send_signal(signal.SIGINT)
    process.communicate(b"\n", timeout=60)
    assert process.returncode == 0
