"""Files: each one a sample, read through a function."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.data.lazy.counting import Uncounted
from daskdl.data.lazy.joined import even_bounds
from daskdl.data.lazy.transformations import Range
from daskdl.data.nested import flat
from daskdl.data.partition import Batch
from daskdl.data.recipe import Arrays, Positions, Recipe
from daskdl.data.sources.records import Records, as_sample, check_on_error
from daskdl.data.sources.urls import expanded, opened, version_in, versions_at
from daskdl.data.sources.zarr import PARTITION_BYTES
from daskdl.errors import DataError

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet


@dataclass(frozen=True)
class FilesRecipe(Recipe):
    """Recipe of samples in a file each; see :meth:`SampleSet.from_files`.

    ``sample_bytes`` of the first sample are an estimate for all. ``versions`` has one for each
    file; "" if it is not known (:mod:`daskdl.data.sources.urls`).
    """

    urls: tuple[str, ...] = field(repr=False)
    read: Callable[..., Any]
    columns: Batch = field(repr=False)
    on_error: str
    sample_bytes: int
    storage_options: Mapping[str, Any] = field(repr=False)
    versions: tuple[str, ...] = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the samples, estimated from one."""
        return self.sample_bytes * len(self.urls)

    @property
    def version(self) -> str:
        """Versions of all files, a line for each; "" if none is known."""
        return "\n".join(self.versions).strip()

    def __len__(self) -> int:
        return len(self.urls)

    def part(self, start: int, stop: int) -> FilesRecipe:
        """Return the recipe of the samples from ``start`` up to ``stop``."""
        return self.select(Range(start, stop), stop - start)

    def select(self, positions: Positions, count: int) -> FilesRecipe:
        """Return the recipe of the samples at these positions; no others are read."""
        indices = positions(len(self))
        return replace(
            self,
            urls=tuple(self.urls[i] for i in indices),
            columns={name: column[indices] for name, column in self.columns.items()},
            versions=tuple(self.versions[i] for i in indices),
        )

    def load(self) -> Arrays:
        """Read the files."""
        with_url = takes_url(self.read)

        def sample(i: int) -> dict[str, Any]:
            url = self.urls[i]
            with opened(url, self.storage_options, self.versions[i]) as file:
                value = self.read(file, url) if with_url else self.read(file)
            more = {name: column[i] for name, column in self.columns.items()}
            return {**as_sample(value), **more}

        return Records(sample, self.on_error, self.urls.__getitem__)(range(len(self.urls)))


def from_files(
    cls: type[SampleSet],
    /,
    urls: str | os.PathLike[str] | Iterable[str],
    read: Callable[..., Any],
    *,
    partitions: int | None = None,
    on_error: str = "raise",
    storage_options: Mapping[str, Any] | None = None,
    **columns: ArrayLike,
) -> SampleSet:
    """Make a set of files; each file is a sample.

    Parameters
    ----------
    urls, on_error, storage_options :
        As for :meth:`from_parquet`.
    read : callable
        ``read(file)`` or ``read(file, url)``, from a file open in binary mode to a sample, see
        :meth:`from_bag`.
    partitions : int, optional
        By default partitions have 64 MB, if all samples are as large as the first.
    **columns : array_like (files, ...)
        Further arrays, such as ``y=labels``.
    """
    check_on_error(on_error)
    options = dict(storage_options or {})
    details: dict[str, Mapping[str, Any]] = {}
    files = expanded(urls, options, details=details)
    versions = {url: version_in(detail) for url, detail in details.items() if "://" in url}
    untold = [url for url in files if not versions.get(url)]
    versions |= dict(zip(untold, versions_at(untold, options), strict=True))
    arrays = {name: np.asarray(column) for name, column in flat(columns).items()}
    for name, column in arrays.items():
        if column.shape[:1] != (len(files),):
            raise DataError(
                f"SampleSet.from_files: expected {name} with one entry for each of {len(files)} "
                f"files, found shape {column.shape}"
                "; order it as the files, which come by their names"
            )
    whole = FilesRecipe(
        tuple(files), read, arrays, on_error, 0, options, tuple(versions[url] for url in files)
    )
    measured = whole.part(0, 1).load()  # a mistake in the function shows at once
    whole = replace(whole, sample_bytes=measured.nbytes)
    if partitions is None:
        partitions = -(-whole.nbytes // PARTITION_BYTES)
    bounds = even_bounds(len(files), max(1, min(partitions, len(files))))
    parts = [whole.part(a, b) for a, b in pairwise(bounds)]
    return cls([Uncounted(part) for part in parts] if on_error == "skip" else parts)


def takes_url(read: Callable[..., Any]) -> bool:
    """Return whether a function also takes the URL."""
    try:
        parameters = list(inspect.signature(read).parameters.values())
    except (TypeError, ValueError):
        return False
    required = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(required) > 1
