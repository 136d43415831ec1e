"""Versions of files, by which one that was replaced since the samples were made is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from daskdl.errors import DataError

#: Files in stores that are asked for their versions one by one, at most, and how many at a time.
ASKED, SIDE_BY_SIDE = 1000, 16
#: Names under which stores tell when or to what a file was changed, the surest first.
_CHANGED = ("ETag", "etag", "md5Hash", "Content-MD5", "Last-Modified", "LastModified", "mtime")


def version_of(file: Any, url: str) -> str:
    """Return size and time, or the store's ETag, of an open file; "" if nobody tells them.

    Parameters
    ----------
    file : file object
        As fsspec opens it.
    url : str
        Of a copy that fsspec keeps (``filecache::``) nothing is told: each machine has its own.
    """
    if "::" in url:
        return ""
    if "://" not in url or url.startswith("file://"):
        return _local(os.fstat(file.fileno()))
    return next(filter(None, (_told(details, _CHANGED) for details in _details(file))), "")


def version_at(url: str, options: Mapping[str, Any]) -> str:
    """Return the version of a file as :func:`version_of` does, without opening it; "" if none.

    One request where it is not a local file.
    """
    if "::" in url:
        return ""
    try:
        if "://" not in url or url.startswith("file://"):
            return _local(os.stat(url.removeprefix("file://")))
        import fsspec

        system, path = fsspec.url_to_fs(url, **options)
        return _told(system.info(path), _CHANGED)
    except OSError:
        return ""


def versions_at(urls: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return :func:`version_at` of files, of :data:`ASKED` at most that are not local.

    Of more of these nothing is told, since each takes a request.
    """

    def is_far(url: str) -> bool:
        return "://" in url and not url.startswith("file://")

    far = [url for url in urls if is_far(url)]
    asked = far if len(far) <= ASKED else []
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        told = dict(zip(asked, pool.map(lambda url: version_at(url, options), asked), strict=True))
    return [told.get(url, "") if is_far(url) else version_at(url, options) for url in urls]


def version_in(details: Mapping[str, Any]) -> str:
    """Return the version that a listing tells; times are told in ways that differ from a file's."""
    return _told(details, _CHANGED[:3])


def _local(found: os.stat_result) -> str:
    return f"{found.st_size} bytes of {found.st_mtime_ns}"


def _told(details: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if details.get(name):
            return f"{details.get('size')} bytes of {details[name]}"
    return ""


def _details(file: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the details that an open file knows of itself, and then those that its store tells."""
    details = getattr(file, "details", None)
    if isinstance(details, dict):
        yield details
        yield file.fs.info(file.path)


def check_version(file: Any, url: str, expected: str) -> None:
    """Raise a DataError if an open file is another than when the samples were made."""
    if expected:
        check_found(version_of(file, url), url, expected)


def check_found(found: str, url: str, expected: str) -> None:
    """Raise a DataError if the version of what is at a URL is another than expected."""
    if expected and found and found != expected:
        raise DataError(
            f"{url}: expected the file of which the samples were made, {expected}, found another "
            f"in its place, {found}; make the SampleSet anew, and begin training anew"
        )
