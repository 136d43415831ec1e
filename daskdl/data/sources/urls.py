"""URLs of files, of any store that fsspec knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from daskdl.errors import DataError


def opened(url: str, options: Mapping[str, Any]) -> Any:
    """Open a file to read bytes, as a context."""
    import fsspec

    return fsspec.open(url, "rb", **options)


def expanded(
    urls: Any,
    options: Mapping[str, Any],
    ending: str = "",
    details: dict[str, Mapping[str, Any]] | None = None,
) -> list[str]:
    """Return the files that one URL, with ``*`` or of a folder, or many mean.

    Parameters
    ----------
    urls : path or URL, or several
        Local ones are made absolute: workers may have another current folder. Each pattern's and
        folder's files come in the order of their names.
    options : mapping
        For fsspec.
    ending : str
        Files of folders that end otherwise are passed over.
    details : dict, optional
        Gets, by URL, what stores tell of files that are looked for in them.

    Raises
    ------
    DataError
        When there are none.
    """
    import fsspec

    single = isinstance(urls, str | os.PathLike)
    several: list[str | os.PathLike[str]] = [urls] if single else list(urls)
    files: list[str] = []
    for one in several:
        url = os.fspath(one)
        if "://" not in url:
            url = os.path.abspath(url)
        if "*" not in url and not single:
            files.append(url)  # many are not looked for one by one
            continue
        system, path = fsspec.url_to_fs(url, **options)
        told: dict[str, Any] = {path: {}}
        if "*" in url:
            told = system.glob(path, detail=True)
        elif system.isdir(path):
            told = {p: d for p, d in system.find(path, detail=True).items() if p.endswith(ending)}
        paths = sorted(told)
        if not paths:
            raise DataError(
                f"{url}: expected files, found none"
                "; look at the path; each worker needs to see it too"
            )
        names = [p if "://" not in url else system.unstrip_protocol(p) for p in paths]
        files.extend(names)
        if details is not None:
            details.update(zip(names, map(told.__getitem__, paths), strict=True))
    if not files:
        raise DataError("SampleSet: expected URLs of files, found none")
    return files
