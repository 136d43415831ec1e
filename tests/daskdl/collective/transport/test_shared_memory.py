from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from daskdl.collective.transport.shared_memory import SharedMemory


def open_descriptors() -> int:
    """Return how many descriptors of shared memory this process has; other threads have others."""
    links = (file for file in Path("/proc/self/fd").iterdir() if file.is_symlink())
    return sum(os.path.realpath(link).startswith("/memfd:daskdl") for link in links)


def test_what_one_writes_the_other_reads() -> None:
    one, descriptor = SharedMemory.made(100)
    other = SharedMemory(descriptor, 100)
    one.write([np.arange(5, dtype=np.float32), np.array([7, 8], np.uint16)])
    few, more = np.zeros(5, np.float32), np.zeros(2, np.uint16)
    other.read([few, more])
    np.testing.assert_array_equal(few, np.arange(5))
    np.testing.assert_array_equal(more, [7, 8])
    assert one.size == other.size == 100


def test_descriptors_are_closed_and_no_file_has_a_name() -> None:
    before = set(os.listdir("/dev/shm")), open_descriptors()
    memory, descriptor = SharedMemory.made(1 << 20)
    named = set(os.listdir("/dev/shm")) - before[0]
    assert not any("daskdl" in name for name in named)
    SharedMemory(descriptor, 1 << 20)
    del memory
    assert open_descriptors() <= before[1] + 1  # mmap keeps one of its own


def test_without_memory_nothing_stays_open(monkeypatch) -> None:
    def full(*_: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = open_descriptors()
    with pytest.raises(OSError, match="no space left"):
        SharedMemory.made(100)
    assert open_descriptors() == before
