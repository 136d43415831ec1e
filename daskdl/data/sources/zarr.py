"""zarr: stretches of arrays in a store, read on the workers that use them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.data.lazy.joined import even_bounds
from daskdl.data.nested import flat
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Arrays, Excerpt, Recipe
from daskdl.data.sources.urls import check_version, located, version_at, version_in
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet

#: Bytes up to which chunks, files or rows are joined, unless the number of partitions is given.
PARTITION_BYTES = 64_000_000


@dataclass(frozen=True)
class SliceRecipe(Excerpt):
    """Recipe of the samples ``start`` up to ``stop`` of arrays in a store.

    ``source()`` returns the arrays by name, which are sliced along their first axis.
    """

    source: Any = field(repr=False)
    start: int
    stop: int
    sample_bytes: int

    @property
    def version(self) -> str:
        """Versions of the arrays, a line for each; "" if none is known."""
        return "\n".join(getattr(self.source, "versions", {}).values()).strip()

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        return self.sample_bytes * len(self)

    def load(self) -> Arrays:
        """Read the samples."""
        arrays = self.source().items()
        return Arrays({name: np.asarray(array[self.start : self.stop]) for name, array in arrays})


@dataclass(frozen=True)
class ZarrArrays:
    """Arrays of a zarr group by their paths, opened on the worker that reads.

    ``versions`` are of each array's :func:`first_chunk`. They distinguish a store that was replaced
    from one that has grown.
    """

    url: str
    names: Mapping[str, str]
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    versions: Mapping[str, str] = field(default_factory=dict, repr=False)

    def known(self) -> ZarrArrays:
        """Return the same arrays with their current versions."""
        known = {n: first_chunk(self.url, a, self.storage_options) for n, a in self().items()}
        return replace(self, versions=known)

    def __call__(self) -> dict[str, Any]:
        """Return the arrays by name."""
        group = _opened(self.url, tuple(self.storage_options.items()))
        missing = sorted(path for path in {*self.names.values()} if path not in group)
        if missing:
            raise DataError(
                f"{self.url}: expected arrays {sorted(self.names.values())}, found none called "
                f"{missing}; there are {sorted(group)}"
            )
        arrays = {name: group[path] for name, path in self.names.items()}
        for name, array in arrays.items():
            if not hasattr(array, "shape"):
                raise DataError(
                    f"{self.url}, {self.names[name]}: expected an array, found a group of "
                    f"{sorted(array)}; give the path of an array in it, as in 'group/array'"
                )
        for name, version in self.versions.items():
            now = first_chunk(self.url, arrays[name], self.storage_options)
            check_version(now, f"{self.url}, {self.names[name]}", version)
        return arrays


def from_zarr(
    cls: type[SampleSet],
    /,
    url: str | os.PathLike[str],
    *,
    partitions: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **names: str,
) -> SampleSet:
    """Make a set of arrays of a zarr group; workers read it stretch by stretch.

    Parameters
    ----------
    url : path or URL
    partitions : int, optional
        By default a partition has whole chunks of the first array, some 64 MB.
    storage_options : mapping, optional
        For fsspec.
    **names : str
        Path of an array in the group for each name; the first axis is that of the samples.
    """
    if not names:
        raise SettingsError(
            "SampleSet.from_zarr: expected the arrays to use, such as x='images', found none"
        )
    path = located(url)
    source = ZarrArrays(path, flat(names), dict(storage_options or {}))
    return in_partitions(cls, slice_recipes(source.known(), partitions, path), partitions)


def in_partitions(
    cls: type[SampleSet], recipes: Sequence[Recipe], partitions: int | None
) -> SampleSet:
    """Return the set of recipes, cut into a number of partitions unless it is None."""
    samples = cls(recipes)
    return samples if partitions is None else samples.repartition(partitions)


def first_chunk(url: str, array: Any, options: Mapping[str, Any]) -> str:
    """Return the version of an array's first chunk, which stays when a store grows.

    Without such a chunk it is the version of the metadata.
    """
    key = array.metadata.encode_chunk_key((0,) * array.ndim)
    names = key, "zarr.json", ".zarray"
    places = ("/".join(filter(None, (url.rstrip("/"), array.path, name))) for name in names)
    return next(filter(None, (version_at(place, options) for place in places)), "")


def version_of_array(array: Any) -> str:
    """Return a digest of the names and versions of a zarr array's files; "" for other arrays.

    The files are listed once, and not opened.
    """
    import fsspec

    store = getattr(array, "store", None)
    system, root = getattr(store, "fs", None), getattr(store, "path", None)
    if system is None:
        system, root = fsspec.filesystem("file"), getattr(store, "root", None)
    if root is None:
        return ""
    if system.async_impl:  # zarr's own, which works in its loop
        options = {**system.storage_options, "asynchronous": False}
        system = fsspec.filesystem(system.protocol[0], **options)
    files = system.find("/".join(filter(None, (str(root), array.path))), detail=True)
    versions = [
        f"{name} {version_in(one) or (one.get('size'), one.get('mtime'))}"
        for name, one in sorted(files.items())
    ]
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()[:16]


def check_plain(name: str, array: Any, codes: bool = False) -> None:
    """Refuse an array whose CF attributes say that its numbers are packed.

    With ``codes`` also refuse codes for missing values. NaN, as a number or as xarray writes it
    into zarr, is not a code.
    """
    attributes = getattr(array, "attrs", {})
    changes: dict[str, tuple[Any, ...]] = {"scale_factor": (1,), "add_offset": (0,)}
    for key in ("_FillValue", "missing_value") if codes else ():
        changes[key] = ("NaN", "AAAAAAAA+H8=")
    for key, none in changes.items():
        value = np.ravel(attributes.get(key, none[0]))[0]
        if value not in none and value == value:
            raise DataError(
                f"{name}: expected numbers as they are, found the attribute {key} {value}; open "
                "it with xarray, which applies it (SampleSet.from_xarray for samples)"
            )


def common_length(where: str, arrays: Mapping[str, Any]) -> int:
    """Return the length of the arrays' first axis; raise a DataError if lengths differ."""
    shapes = {k: (len(a),) if isinstance(a, Ragged) else a.shape for k, a in arrays.items()}
    lengths = {k: shape[0] if shape else "no axis" for k, shape in shapes.items()}
    if len(set(lengths.values())) != 1 or "no axis" in lengths.values():
        raise DataError(
            f"{where}: expected arrays with one common length of the first axis, found "
            f"{lengths or 'no arrays'}; give one entry for each sample in every array"
        )
    return int(next(iter(lengths.values())))


def slice_recipes(source: Any, partitions: int | None, name: str) -> list[Recipe]:
    """Return recipes of arrays, which are sliced when they are needed.

    By default a partition has whole chunks of the first array.
    """
    arrays = source()
    n = common_length(name, arrays)
    for key, array in arrays.items():
        check_plain(f"{name}, {key}", array, codes=True)
    nbytes = sum(int(np.prod(a.shape[1:])) * np.dtype(a.dtype).itemsize for a in arrays.values())
    if partitions is None:
        first = next(iter(arrays.values()))
        chunk = next(iter(getattr(first, "chunks", None) or (n,)))
        chunk = max(1, chunk * max(1, PARTITION_BYTES // max(1, chunk * nbytes)))
        bounds = [*range(0, n, chunk), n]
    else:
        bounds = even_bounds(n, max(1, min(partitions, n)))
    return [SliceRecipe(source, a, b, nbytes) for a, b in pairwise(bounds)]


@lru_cache(maxsize=16)
def _opened(url: str, options: tuple[tuple[str, Any], ...]) -> Any:
    import zarr

    try:
        return zarr.open_group(url, mode="r", storage_options=dict(options) or None)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{url}: expected a zarr group, found none ({error})"
            "; give the folder of the group, and arrays inside of it by name"
        ) from error
