"""Files by their URLs, in any store that fsspec knows: lists and versions.

The version shows whether a file was replaced since the samples were made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from daskdl.errors import DataError

#: Files in stores that are asked for their versions one by one, at most, and how many at a time.
ASKED, SIDE_BY_SIDE = 1000, 16
#: Names under which stores tell when or to what a file was changed, the surest first.
_CHANGED = ("ETag", "etag", "md5Hash", "Content-MD5", "Last-Modified", "LastModified", "mtime")
#: Files of table formats that say which other files count.
_LOG = re.compile(r"_delta_log/|metadata/.*\.metadata\.json$|\.hoodie/")


@contextmanager
def opened(url: str, options: Mapping[str, Any], version: str = "") -> Iterator[Any]:
    """Open a file in binary mode; raise a DataError if it has another version."""
    import fsspec

    with fsspec.open(url, "rb", **options) as file:
        check_version(version_of(file, url) if version else "", url, version)
        yield file


def expanded(
    urls: Any,
    options: Mapping[str, Any],
    ending: str = "",
    details: dict[str, Mapping[str, Any]] | None = None,
) -> list[str]:
    """Return the files of one URL (with ``*``, or of a folder) or of several.

    Each pattern's and folder's files are in the order of their names; files of folders with other
    endings are left out, with an ending also those under names that begin with ``.`` or ``_``, such
    as what a writer has not finished. ``details`` gets, by URL, the store's information about
    listed files.

    Raises
    ------
    DataError
        When there are none, and for a folder of a table format, where old files have old rows.
    """
    import fsspec

    single = isinstance(urls, str | os.PathLike)
    files: list[str] = []
    for one in [urls] if single else urls:
        url = located(one)
        if "*" not in url and not single:
            files.append(url)  # many are not looked for one by one
            continue
        system, path = fsspec.url_to_fs(url, **options)
        listed: dict[str, Any] = {path: {}}
        if "*" in url:
            listed = system.glob(path, detail=True)
        elif system.isdir(path):
            listed = _of_folder(url, path, system.find(path, detail=True), ending)
        paths = sorted(listed)
        if not paths:
            raise DataError(
                f"{url}: expected files, found none"
                "; look at the path; each worker needs to see it too"
            )
        names = [p if "://" not in url else system.unstrip_protocol(p) for p in paths]
        files.extend(names)
        if details is not None:
            details.update(zip(names, map(listed.__getitem__, paths), strict=True))
    if not files:
        raise DataError("SampleSet: expected URLs of files, found none")
    return files


def _of_folder(url: str, path: str, files: dict[str, Any], ending: str) -> dict[str, Any]:
    """Return the files of a folder that end so."""
    inside = {file: file.removeprefix(path).lstrip("/") for file in files} if ending else {}
    log = next((n for n in inside.values() if _LOG.match(n)), None)
    if log is not None:
        raise DataError(
            f"{url}: expected a folder of files, found a table of Delta, Iceberg or Hudi ({log}), "
            "some of whose files may have rows that were deleted since; give the files of its "
            "present version, such as deltalake's DeltaTable(url).file_uris()"
        )
    hidden = {file for file, name in inside.items() if re.search(r"(^|/)[._]", name)}
    return {p: d for p, d in files.items() if p.endswith(ending) and p not in hidden}


def located(path: str | os.PathLike[str]) -> str:
    """Return a URL, or an absolute path, since workers may have another current folder."""
    url = os.fspath(path)
    return url if "://" in url else os.path.abspath(url)


def version_of(file: Any, url: str) -> str:
    """Return size and time, or the store's ETag, of an open file; "" if they are not known.

    For a copy that fsspec keeps (``filecache::``) it is "", since each machine has its own.
    """
    if "::" in url:
        return ""
    if not _is_far(url):
        return _local(os.fstat(file.fileno()))
    details = getattr(file, "details", None)
    if not isinstance(details, dict):
        return ""
    return _stated(details, _CHANGED) or _stated(file.fs.info(file.path), _CHANGED)


def version_at(url: str, options: Mapping[str, Any]) -> str:
    """Return the version of a file as :func:`version_of` does, without opening it; "" if none.

    It takes one request unless the file is local.
    """
    if "::" in url:
        return ""
    try:
        if not _is_far(url):
            return _local(os.stat(url.removeprefix("file://")))
        import fsspec

        system, path = fsspec.url_to_fs(url, **options)
        return _stated(system.info(path), _CHANGED)
    except OSError:
        return ""


def versions_at(urls: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return :func:`version_at` of files; "" if more than :data:`ASKED` are not local.

    Each of these takes a request.
    """
    far = list(filter(_is_far, urls))
    asked = far if len(far) <= ASKED else []
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        known = dict(zip(asked, pool.map(lambda url: version_at(url, options), asked), strict=True))
    return [known.get(url, "") if _is_far(url) else version_at(url, options) for url in urls]


def version_in(details: Mapping[str, Any]) -> str:
    """Return the version from a listing, whose times have another form than a file's."""
    return _stated(details, _CHANGED[:3])


def check_version(version: str, url: str, expected: str) -> None:
    """Raise a DataError if the version at a URL is not the expected one."""
    if expected and version and version != expected:
        raise DataError(
            f"{url}: expected the file that the samples were made of, {expected}, found another "
            f"in its place, {version}; make the SampleSet anew, and begin training anew"
        )


def _is_far(url: str) -> bool:
    return "://" in url and not url.startswith("file://")


def _local(status: os.stat_result) -> str:
    return f"{status.st_size} bytes of {status.st_mtime_ns}"


def _stated(details: Mapping[str, Any], names: tuple[str, ...]) -> str:
    name = next((name for name in names if details.get(name)), None)
    return "" if name is None else f"{details.get('size')} bytes of {details[name]}"
