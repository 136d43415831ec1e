"""Remote files in batches of hours: fetched, read into a store, and listed as read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daskdl.cluster.bounded import Died, in_order
from nowcast.ingest.rain_map import Failure
from nowcast.ingest.remote import Access, RemoteFile, fetch
from nowcast.ingest.scan import GRACE

if TYPE_CHECKING:
    from distributed import Client

#: Files of a batch, or all of one hour: copies of so many lie on the disk at a time.
FILES = 256


def batches(
    files: Sequence[RemoteFile], early: np.timedelta64 = GRACE
) -> Iterator[list[RemoteFile]]:
    """Give files in batches that end with an hour, so that no volume's sweeps are parted.

    Files that are so ``early`` before an hour belong to it.
    """

    def hour(file: RemoteFile) -> str:
        return "" if file.time is None else str((file.time + early).astype("datetime64[h]"))

    batch: list[RemoteFile] = []
    for _, group in groupby(files, hour):
        batch += group
        if len(batch) >= FILES:
            yield batch
            batch = []
    if batch:
        yield batch


class ReadList:
    """The addresses of the files that a store was given, beside it; gone with the store."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f".{store.name}.read")
        if not store.exists():
            self.path.unlink(missing_ok=True)

    def without_read(self, files: Sequence[RemoteFile]) -> list[RemoteFile]:
        """Return the files that are not in the list."""
        if not self.path.exists():
            return list(files)
        read = set(self.path.read_text(encoding="utf-8").splitlines())
        return [file for file in files if file.url not in read]

    def add(self, files: Sequence[RemoteFile]) -> None:
        """Add files, when the store has them for good."""
        if not files:
            return
        with self.path.open("a", encoding="utf-8") as lines:
            lines.writelines(f"{file.url}\n" for file in files)


@contextmanager
def copies(
    client: Client | None, files: Sequence[RemoteFile], folder: Path, access: Access, *, keep: bool
) -> Iterator[tuple[dict[Path, RemoteFile], list[Failure]]]:
    """Give the copies of files in a folder, and the failures; remove the copies unless kept."""
    fetched: dict[Path, RemoteFile] = {}
    failures: list[Failure] = []
    try:
        calls = [(file, folder, access) for file in files]
        for (file, *_), result in in_order(client, fetch, calls, "fetch"):
            if isinstance(result, Died):
                result = Failure(file.url, result.reason)
            if isinstance(result, Failure):
                failures.append(result)
            else:
                fetched[result] = file
        yield fetched, failures
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def whole_bytes(files: Sequence[RemoteFile]) -> int:
    """Return about how many bytes files have; of one that the list tells no size, 5 MB."""
    return int(np.sum([5_000_000 if file.size is None else file.size for file in files]))
