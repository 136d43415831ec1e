"""Results: a file for each partition of a collection, so that a run can resume."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.cluster.current import current_client
from daskdl.data.functions import in_stretches
from daskdl.data.on_workers.tasks import on_each
from daskdl.data.partition import Batch
from daskdl.data.ragged import Ragged, concatenated
from daskdl.data.samples import SampleSet
from daskdl.data.sources.parquet import parquet_module
from daskdl.data.sources.records import Records
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    from daskdl.data.partition import Partition

#: Suffixes by format.
FORMATS = {"parquet": ".parquet", "zarr": ""}
MANIFEST = "_manifest.json"
#: What a folder has, by its manifest.
RUN = "{partitions} partitions as {format}, of version {version!r}"
#: Name of the only column of results that have no names.
COLUMN = "prediction"


@dataclass(frozen=True)
class Written:
    """Result of :func:`write_results`: the partitions that were written, and all partitions.

    Parameters
    ----------
    parts : tuple of str
        Path or URL of each partition.
    written : tuple of int
        Partitions that this call wrote.
    samples : int
        Samples in these partitions.
    """

    parts: tuple[str, ...]
    written: tuple[int, ...]
    samples: int


def write_results(
    results: Any,
    path: str | os.PathLike[str],
    *,
    format: str = "parquet",
    version: str = "",
    tell: Callable[[int, int, int], None] | None = None,
) -> Written:
    """Compute a collection and write each partition to a file of its own, where it is computed.

    A file gets its name, such as ``part-00007.parquet``, when it is whole. The same call again
    computes and writes only missing partitions. It does not know whether the results are still the
    same; use ``version`` for that. Two calls must not write to one folder at the same time.

    Parameters
    ----------
    results : SampleSet, dask Bag, Array or DataFrame, or list of Delayed
        Results such as ``model.predict`` returns. A Delayed is a dict of arrays by name. Elements
        of a Bag are dicts of arrays by name, or arrays or numbers of one shape, which become a
        column ``prediction``, as do the chunks of an Array. The index of a DataFrame is a column.
    path : path or URL
        Folder, which is created; for Parquet a URL of any store that fsspec knows.
    format : "parquet" or "zarr"
        A Parquet file for each partition: rows of arrays are lists of a fixed size, sequences of
        different lengths are lists. Or a zarr group: such sequences are arrays ``name`` of all
        items and ``name_offsets``.
    version : str
        Version of the results; a folder of another version is refused.
    tell : callable, optional
        Called with the number of partitions written, of all partitions and of samples written; for
        a Dask collection on a cluster after each partition.

    Returns
    -------
    Written

    Raises
    ------
    SettingsError
        When the folder has results of another number of partitions, format or version.
    DataError
        When a file cannot hold a partition.
    """
    if format not in FORMATS:
        raise SettingsError(f"write_results, format: expected parquet or zarr, found {format!r}")
    folder = _Folder.of(path, format)
    count, compute = _parts_of(results)
    folder.prepare({"partitions": count, "format": format, "version": version})
    have = folder.complete()
    numbers = [i for i in range(count) if i not in have]
    rows = compute(numbers, folder, tell or (lambda *_: None)) if numbers else []
    folder.tidy()
    return Written(tuple(map(folder.part, range(count))), tuple(numbers), sum(rows))


Tell = Callable[[int, int, int], None]
Compute = Callable[[Sequence[int], "_Folder", Tell], list[int]]


def _parts_of(results: Any) -> tuple[int, Compute]:
    """Return the number of partitions, and a function that computes and writes some of them."""
    if isinstance(results, SampleSet):
        return results.partitions, partial(_write_samples, results)
    if isinstance(results, list):
        return len(results), partial(_write_delayed, results)
    if hasattr(results, "to_delayed"):
        if hasattr(results, "numblocks"):  # a dask Array: whole samples in each chunk
            results = results.rechunk(dict.fromkeys(range(1, results.ndim), -1))
        parts = np.asarray(results.to_delayed(), object).ravel().tolist()
        return len(parts), partial(_write_delayed, parts)
    raise SettingsError(
        "write_results: expected a SampleSet, a dask Bag, Array or DataFrame, or a list, found "
        f"{type(results).__name__}; wrap arrays by SampleSet.from_arrays"
    )


def _write_samples(
    samples: SampleSet, numbers: Sequence[int], folder: _Folder, tell: Tell
) -> list[int]:
    tell(0, len(numbers), 0)
    write = partial(_write_partition, functions=samples.functions, numbers=numbers, folder=folder)
    return on_each([samples.recipes[i] for i in numbers], write, None)


def _write_partition(
    partition: Partition, at: int, *, functions: Any, numbers: Sequence[int], folder: _Folder
) -> int:
    pieces = list(in_stretches(partition, functions, "write", numbers[at]))
    columns = {name: concatenated([piece[name] for piece in pieces]) for name in pieces[0]}
    return folder.write(numbers[at], columns)


def _write_delayed(
    parts: Sequence[Any], numbers: Sequence[int], folder: _Folder, tell: Tell
) -> list[int]:
    import dask

    write = dask.delayed(_write_part, pure=False)
    tasks = [write(parts[i], i, folder) for i in numbers]
    client = current_client()
    if client is None:
        return list(dask.compute(*tasks))
    from distributed import as_completed

    rows: list[int] = []
    tell(0, len(tasks), 0)
    for _, count in as_completed(client.compute(tasks), with_results=True):
        rows.append(count)
        tell(len(rows), len(tasks), sum(rows))
    return rows


def _write_part(part: Any, number: int, folder: _Folder) -> int:
    """Write a chunk, a dict of arrays, the elements of a Bag's partition, or a DataFrame."""
    if isinstance(part, dict):
        values = part
    elif hasattr(part, "to_frame") or hasattr(part, "columns"):
        frame = part.to_frame(part.name or COLUMN) if hasattr(part, "to_frame") else part
        index = {str(frame.index.name or "index"): frame.index}
        values = index | {str(name): frame[name] for name in frame.columns}
    elif isinstance(part, np.ndarray):
        values = {COLUMN: part}
    else:
        values = Records(_named, "raise", f"bag {number}, element")(part).arrays
    columns = {n: v.to_numpy() if hasattr(v, "to_numpy") else v for n, v in values.items()}
    return folder.write(number, columns)


def _named(element: Any) -> dict[str, Any]:
    return element if isinstance(element, dict) else {COLUMN: element}


@dataclass(frozen=True)
class _Folder:
    """A folder for partitions; it travels with the tasks."""

    path: str
    format: str

    @classmethod
    def of(cls, path: str | os.PathLike[str], format: str) -> _Folder:
        path = os.fspath(path)
        if "://" not in path:
            return cls(os.path.abspath(path), format)  # workers may have another current folder
        if format == "zarr":
            raise SettingsError(
                f"write_results: expected a local folder for zarr, found {path}; a group of many "
                "files cannot be renamed there. Write Parquet"
            )
        return cls(path.rstrip("/"), format)

    @property
    def files(self) -> Any:
        """The file system."""
        import fsspec

        return fsspec.url_to_fs(self.path)[0]

    def part(self, number: int) -> str:
        """Return the path or URL of a partition."""
        return f"{self.path}/part-{number:05d}{FORMATS[self.format]}"

    def prepare(self, manifest: dict[str, Any]) -> None:
        """Create the folder, or check that it belongs to the same run."""
        files, path = self.files, f"{self.path}/{MANIFEST}"
        files.makedirs(self.path, exist_ok=True)
        if files.exists(path):
            try:
                earlier = RUN.format_map(json.loads(files.cat_file(path)))
            except (ValueError, KeyError, TypeError):
                earlier = "a damaged manifest"
            if earlier != (this := RUN.format_map(manifest)):
                raise SettingsError(
                    f"write_results: expected {self.path} to have {this}, found {earlier}; a "
                    "folder is of one model, source and options: give another, or remove this one"
                )
        elif any(_base(name)[0] not in "._" for name in files.ls(self.path, detail=False)):
            raise SettingsError(
                f"write_results: expected {self.path} to be empty or to have the partitions of an "
                f"earlier call, found other files without {MANIFEST}; give another folder"
            )
        else:
            temporary = self._temporary(MANIFEST)
            files.pipe_file(temporary, json.dumps(manifest).encode())
            self._rename(temporary, path)

    def tidy(self) -> None:
        """Remove unfinished files of lost workers once all partitions are there."""
        files = self.files
        for name in files.ls(self.path, detail=False, refresh=True):
            if _base(name).startswith(".part-"):
                with suppress(FileNotFoundError):
                    files.rm(name, recursive=True)

    def complete(self) -> set[int]:
        """Return the numbers of the complete partitions."""
        names = map(_base, self.files.ls(self.path, detail=False, refresh=True))
        parts = [name.removesuffix(FORMATS[self.format]) for name in names]
        return {int(name[5:]) for name in parts if name.startswith("part-")}

    def write(self, number: int, columns: Batch) -> int:
        """Write one partition; return its samples."""
        if not columns:
            raise DataError(
                f"write_results, partition {number}: expected samples, found none; repartition so "
                "that there are some in each"
            )
        part = self.part(number)
        temporary = self._temporary(_base(part))
        try:
            if self.format == "zarr":
                _write_group(temporary, columns, part)
            else:
                with self.files.open(temporary, "wb") as file:
                    _write_table(file, columns, part)
            self._rename(temporary, part)
        except BaseException:
            if self.files.exists(temporary):
                self.files.rm(temporary, recursive=True)
            raise
        return len(next(iter(columns.values())))

    def _temporary(self, name: str) -> str:
        return f"{self.path}/.{name}.{uuid.uuid4().hex[:8]}"

    def _rename(self, temporary: str, path: str) -> None:
        if "://" in self.path:
            self.files.mv(temporary, path)
        elif os.path.isdir(path):  # another attempt at the same task was faster
            shutil.rmtree(temporary)
        else:
            os.replace(temporary, path)


def _base(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]


def _write_table(file: Any, columns: Batch, name: str) -> None:
    parquet = parquet_module("write_results")
    import pyarrow as pa

    try:
        arrays = {column: _arrow(pa, values) for column, values in columns.items()}
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"{name}: expected columns that Parquet can keep, found "
            f"{ {n: str(getattr(v, 'dtype', type(v))) for n, v in columns.items()} } ({error})"
            "; convert them by map() first"
        ) from error
    parquet.write_table(pa.table(arrays), file)


def _arrow(pa: Any, values: Any) -> Any:
    if isinstance(values, Ragged):
        items = values.values
        inner = _arrow(pa, items)
        return pa.LargeListArray.from_arrays(pa.array(values.offsets), inner)
    values = np.asarray(values)
    if values.ndim == 1:
        return pa.array(values.tolist() if values.dtype.kind in "TO" else values)
    if values.ndim == 2:
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(values))


def _write_group(path: str, columns: Batch, name: str) -> None:
    import zarr

    group = zarr.open_group(path, mode="w", zarr_format=3)
    for column, values in columns.items():
        if isinstance(values, Ragged):
            _add(group, column, values.values, f"{column}_item", name)
            _add(group, f"{column}_offsets", values.offsets, f"{column}_offset", name)
        else:
            _add(group, column, np.asarray(values), "sample", name)


def _add(group: Any, column: str, array: Any, axis: str, name: str) -> None:
    if array.dtype.kind not in "biufc":
        raise DataError(
            f"{name}: expected {column!r} to be numbers, found {array.dtype}; write Parquet, which "
            "keeps texts and bytes"
        )
    axes = [axis, *(f"{column}_{i}" for i in range(1, array.ndim))]
    group.create_array(column, data=array, dimension_names=axes)
