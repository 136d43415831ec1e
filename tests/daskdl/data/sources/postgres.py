"""A real PostgreSQL on the loopback interface, for as long as a test needs it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import pytest

PASSWORD = "open sesame"


def programs() -> Path:
    """Return the folder of PostgreSQL's programs; the test is skipped without them."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    path = shutil.which("initdb") or (installed[-1] if installed else None)
    if path is None:
        pytest.skip("no PostgreSQL here: ci/postgres.sh installs Debian's")
    return Path(path).resolve().parent


class Server:
    """A server with a folder and a port of its own; its user is `reader`."""

    def __init__(self) -> None:
        self.programs = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self.log = self.folder.parent / f"{self.folder.name}.log"
        self.as_user: list[str] = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self.folder, "postgres")
            self.as_user = ["runuser", "-u", "postgres", "--"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        #: A connection string without a password.
        self.connection = f"postgresql://reader@127.0.0.1:{self.port}/postgres"

    def run(self, program: str, *arguments: str) -> None:
        """Run one of its programs on its data."""
        command = [*self.as_user, str(self.programs / program), "-D", str(self.folder / "data")]
        with self.log.open("ab") as log:
            subprocess.run(
                [*command, *arguments], check=True, stdout=log, stderr=log, cwd="/", timeout=120
            )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off"
        self.run("pg_ctl", "-w", "-t", "100", "-o", settings, "start")

    def stop(self) -> None:
        """Stop it at once, even if a client reads from it."""
        self.run("pg_ctl", "-w", "-m", "fast", "stop")

    def __enter__(self) -> Self:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if self.as_user:
            shutil.chown(secret, "postgres")
        try:
            self.run(
                "initdb", "-U", "reader", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"
            )
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        data = ["-D", str(self.folder / "data"), "-m", "immediate", "stop"]
        subprocess.run(
            [*self.as_user, str(self.programs / "pg_ctl"), *data],
            cwd="/", capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        shutil.rmtree(self.folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
