"""Small disks that tests mount, fill up or make read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[Path]:
    """Mount a disk of ``size``, such as 128k, at ``path``; skip the test where that is refused."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a disk")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def remount(disk: Path, how: str) -> None:
    """Make a disk read-only (``ro``) or writable (``rw``)."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def fill(disk: Path) -> None:
    """Leave no room on the disk."""
    with (disk / "of another").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
