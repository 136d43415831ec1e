"""Scans at addresses: files of buckets, web servers and archives are listed and fetched.

Any store that fsspec knows works. Names are listed here. Workers read the bytes into a folder that
they and this process see; a file appears there only when it is whole. This is done in batches of
hours, and a list next to the rain store has the files that it was given.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.cluster.bounded import Died, in_order
from daskdl.errors import DataError, MissingExtraError, type_and_line
from nowcast.ingest.name_times import name_time, spanned
from nowcast.ingest.rain_map import Failure
from nowcast.ingest.scan import GRACE

if TYPE_CHECKING:
    from distributed import Client


ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]+:(:|//)", re.IGNORECASE)
#: Endings of archives, and fsspec's name for what reads them.
ARCHIVES = {".zip": "zip", ".tar": "tar", ".tgz": "tar", ".tar.gz": "tar", ".tar.bz2": "tar"}
TRIES, PAUSE = 4, 1.0  # seconds before the second try; twice as long before each other one


@dataclass(frozen=True)
class RemoteFile:
    """A file of a store."""

    url: str  #: As fsspec opens it.
    size: int | None = None  #: Bytes, if the store lists them.
    time: np.datetime64 | None = None  #: Time in its name.
    #: It is a file that the user named or that fits a pattern: it has to be a radar file. What is
    #: met in a folder or an archive may be anything.
    named: bool = True

    @property
    def local_name(self) -> str:
        """Relative path of its copy: the address without characters that a file system refuses."""
        parts = [part.partition("://")[2] or part for part in reversed(self.url.split("::"))]
        return re.sub(r"[^\w./-]+", "_", "/".join(parts)).replace("..", "_").strip("/")


@dataclass(frozen=True)
class Access:
    """Options for fsspec, such as ``{"anon": True}``, and the range of wanted times.

    Options of archives are for the archive's store. Files with a time in their names before
    ``first`` or after ``last`` are left out.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    first: np.datetime64 | None = None
    last: np.datetime64 | None = None

    def wants(self, file: RemoteFile) -> bool:
        """Return whether a file's time is wanted; files without a time are."""
        if file.time is None:
            return True
        early = self.first is not None and file.time < self.first
        return not early and not (self.last is not None and file.time > self.last)

    def system(self, url: str) -> tuple[Any, str]:
        """Return the file system and the path of an address."""
        import fsspec

        inner = url.rpartition("::")[2].partition("://")[0] or "file"
        options = {inner: dict(self.options)} if "::" in url else dict(self.options)
        try:
            return fsspec.url_to_fs(url, **options)
        except ImportError as error:
            raise MissingExtraError(
                f"{url}: {error}; pip install 'daskdl[remote]' brings what reads s3:// and https://"
            ) from None


def is_remote(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is an address or an archive, not a file or folder of this machine."""
    name = os.fspath(source)
    return bool(ADDRESS.match(name)) or _archive(name) is not None


def listed(sources: Iterable[str | os.PathLike[str]], access: Access) -> list[RemoteFile]:
    """Return the files of addresses, each once, by time and name.

    Addresses are files, folders (ending in ``/`` on web servers), archives, or patterns with ``*``;
    fields of times, as in ``s3://bucket/%Y/%m/%d/``, are filled in. Raises DataError if a store
    cannot be listed or an address has no file.
    """
    files: dict[str, RemoteFile] = {}
    for source in sources:
        source = os.fspath(source)
        several = list(spanned(source, access.first, access.last))
        before = len(files)
        for url in several:
            for file in _files(url, access, missing=len(several) > 1):
                if access.wants(file):
                    files.setdefault(file.url, file)
        if len(files) == before:
            bounds = "" if access.first is None and access.last is None else " of the wanted times"
            raise DataError(f"{source}: expected files{bounds}, found none; look at the address")
    end = np.datetime64("9999-01-01", "s")
    return sorted(files.values(), key=lambda file: (file.time or end, file.url))


def _archive(url: str) -> str | None:
    """Return the name of an archive's reader by its ending; None for others or an open one."""
    if "::" in url:
        return None
    return next((how for end, how in ARCHIVES.items() if url.lower().endswith(end)), None)


def _files(url: str, access: Access, *, missing: bool) -> list[RemoteFile]:
    """Return the files of one address; none if it is missing and may be."""
    how = _archive(url)
    if how is not None:
        url = f"{how}://*::{url if ADDRESS.match(url) else Path(url).absolute().as_uri()}"
    named = False
    try:
        system, path = access.system(url)
        system.invalidate_cache()  # fsspec keeps listings, and what came since is wanted
        if how is not None:
            details = system.find("", detail=True)
        elif "*" in path or "?" in path or "[" in path:
            details, named = system.glob(path, detail=True), True
        elif path.endswith("/") or url.endswith("/"):
            details = {info["name"]: info for info in system.ls(path, detail=True)}
        elif system.isfile(path):
            details, named = {path: system.info(path)}, True
        else:
            details = system.find(path, detail=True)
    except (MissingExtraError, DataError):
        raise
    except FileNotFoundError:
        details = {}
    except Exception as error:  # of the library of any store
        raise DataError(
            f"{url}: cannot be listed ({type_and_line(error)}); {_advice(url)}"
        ) from error
    if not details and not missing and how is None and "*" not in path and not url.endswith("/"):
        raise DataError(f"{url}: expected a file or a folder, found nothing; look at the address")
    behind = "::" + url.partition("::")[2] if "::" in url else ""
    scheme = url.partition("://")[0]
    result = []
    for name, info in details.items():
        if info.get("type") == "directory" or name.endswith("/") or "?" in name:
            continue
        full = f"{scheme}://{name}{behind}" if behind else system.unstrip_protocol(name)
        if scheme.startswith("http") and not full.startswith(url.partition("*")[0]):
            continue  # a link of the page to somewhere else
        if not name.rpartition("/")[2].startswith("."):
            result.append(RemoteFile(full, info.get("size"), name_time(name), named))
    return result


def fetch(file: RemoteFile, folder: Path, access: Access) -> Path | Failure:
    """Return the path of a file's whole copy in a folder, or why there is none: a task.

    A copy with the right size is not fetched again. A store that fails is tried again after one,
    two and four seconds.
    """
    target = folder / file.local_name
    if target.is_file() and file.size in (None, target.stat().st_size):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}")
    problem = ""
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE * 2 ** (number - 1))
        try:
            system, path = access.system(file.url)
            system.get_file(path, str(part))
            size = part.stat().st_size
            if file.size not in (None, size):
                raise OSError(f"expected {file.size} bytes, found {size}")
            os.replace(part, target)
            return target
        except (MissingExtraError, FileNotFoundError) as error:
            problem = type_and_line(error)
            break
        except Exception as error:  # of the library of any store
            problem = type_and_line(error)
        finally:
            part.unlink(missing_ok=True)
    return Failure(file.url, f"cannot be fetched ({problem}); {_advice(file.url)}")


def _advice(url: str) -> str:
    if "s3://" in url or "gs://" in url or "gcs://" in url:
        return "open buckets want --storage anon=true, other ones your keys"
    return "look at the address, then try again"


#: Files of a batch, or all of one hour: copies of so many lie on the disk at a time.
FILES = 256


def batches(
    files: Sequence[RemoteFile], early: np.timedelta64 = GRACE
) -> Iterator[list[RemoteFile]]:
    """Yield files in batches that end with an hour, so that a volume's sweeps stay together.

    Files within ``early`` before an hour belong to it.
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
    """The list of addresses given to a store, in a file next to it; removed with the store."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f".{store.name}.read")
        if not store.exists():
            self.path.unlink(missing_ok=True)

    def without_read(self, files: Sequence[RemoteFile]) -> list[RemoteFile]:
        """Return the files outside of the list."""
        if not self.path.exists():
            return list(files)
        read = set(self.path.read_text(encoding="utf-8").splitlines())
        return [file for file in files if file.url not in read]

    def add(self, files: Sequence[RemoteFile]) -> None:
        """Add files after the store has committed them."""
        if not files:
            return
        with self.path.open("a", encoding="utf-8") as lines:
            lines.writelines(f"{file.url}\n" for file in files)


@contextmanager
def copies(
    client: Client | None, files: Sequence[RemoteFile], folder: Path, access: Access, *, keep: bool
) -> Iterator[tuple[dict[Path, RemoteFile], list[Failure]]]:
    """Yield the copies of files in a folder, and failures; remove the copies unless ``keep``."""
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
    """Return the approximate bytes of files; a file without a size counts 5 MB."""
    return int(np.sum([5_000_000 if file.size is None else file.size for file in files]))
