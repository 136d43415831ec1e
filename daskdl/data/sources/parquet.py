"""Parquet: each row group of some files is a partition; workers read its columns."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from daskdl.data.lazy.counting import Uncounted
from daskdl.data.nested import flat
from daskdl.data.recipe import Arrays, Excerpt, Recipe
from daskdl.data.sources.dataframe import Columns, Field
from daskdl.data.sources.records import check_on_error
from daskdl.data.sources.urls import expanded, opened, version_of
from daskdl.errors import DataError, needed

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet

#: Name of a folder of rows without a value, as Hive writes it.
MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class RowGroup(Excerpt):
    """Recipe of rows of one row group of a Parquet file, in the version at the first opening.

    ``folders`` has the columns that the file's folders name, as in ``year=2024``.
    """

    url: str
    group: int
    start: int
    stop: int
    columns: Columns
    row_bytes: float
    version: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    folders: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes before compression."""
        return int(self.row_bytes * len(self))

    @property
    def decodes(self) -> bool:
        """Whether a function makes values of a column."""
        return bool(self.columns.decode)

    def load(self) -> Arrays:
        """Read the needed columns."""
        parquet = parquet_module("SampleSet.from_parquet")
        with (
            opened(self.url, self.storage_options, self.version) as file,
            parquet.ParquetFile(file, page_checksum_verification=True) as parquet_file,
        ):
            names = [name for name in self.columns.needed if name not in self.folders]
            try:
                table = parquet_file.read_row_group(self.group, columns=names)
            except OSError as error:
                raise DataError(
                    f"{self.columns.name}: expected whole pages, found {error}; fetch or write the "
                    "file again"
                ) from error
            frame = table.slice(self.start, len(self)).to_pandas()
            # pandas writes a named index as a column, and makes an index of it again.
            frame = frame.reset_index() if {*frame.index.names} & {*names} else frame
            return self.columns(frame.assign(**self.folders))


def from_parquet(
    cls: type[SampleSet],
    /,
    urls: str | os.PathLike[str] | Iterable[str],
    *,
    decode: Mapping[str, Callable[[Any], Any]] | None = None,
    on_error: str = "raise",
    storage_options: Mapping[str, Any] | None = None,
    **fields: Field,
) -> SampleSet:
    """Make a set of Parquet files; each row group is a partition, and workers read its columns.

    Parameters
    ----------
    urls : path or URL, or several
        Files, a folder, or a pattern with ``*``, in any store that fsspec knows. In a folder, names
        that begin with ``.`` or ``_`` are left out, as Spark and Dask do.
    decode, on_error, **fields :
        As for :meth:`from_dataframe`.
    storage_options : mapping, optional
        For fsspec.
    """
    check_on_error(on_error)
    return cls(row_groups(urls, Columns(flat(fields), decode or {}, on_error), storage_options))


def row_groups(
    urls: Any, columns: Columns, storage_options: Mapping[str, Any] | None = None
) -> list[Recipe]:
    """Return a recipe for each row group of files."""
    options = dict(storage_options or {})
    parquet = parquet_module("SampleSet.from_parquet")

    def groups(url: str, folders: Mapping[str, Any]) -> list[Recipe]:
        columns_of_file = replace(columns, name=url)
        try:
            with opened(url, options) as file:
                version = version_of(file, url)
                with parquet.ParquetFile(file) as parquet_file:
                    metadata, names = parquet_file.metadata, parquet_file.schema_arrow.names
        except (OSError, ValueError) as error:
            raise DataError(
                f"{url}: expected a Parquet file, found {error}"
                "; give the pattern of the Parquet files alone, such as 'folder/*.parquet'"
            ) from error
        folders = {n: v for n, v in folders.items() if n in columns.needed and n not in names}
        columns_of_file.check([*names, *folders])
        recipes: list[Recipe] = []
        for g in range(metadata.num_row_groups):
            group = metadata.row_group(g)
            parts = (group.column(c) for c in range(group.num_columns))
            nbytes = sum(
                c.total_uncompressed_size
                for c in parts
                if c.path_in_schema.split(".")[0] in columns_of_file.needed
            )
            rows = group.num_rows
            named = replace(columns, name=f"{url}, row group {g}")
            size = nbytes / max(1, rows)
            recipe = RowGroup(url, g, 0, rows, named, size, version, options, folders)
            recipes.append(Uncounted(recipe) if columns_of_file.on_error == "skip" else recipe)
        return recipes

    files = expanded(urls, options, ".parquet")
    with ThreadPoolExecutor(8) as pool:
        return [one for some in pool.map(groups, files, _folders(files)) for one in some]


def _folders(urls: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each file the values that its folders name; numbers if all of a name are whole."""
    parts = [[part for part in map(unquote, url.split("/")[:-1]) if "=" in part] for url in urls]
    named = [dict(part.split("=", 1) for part in some) for some in parts]
    words = {k for one in named for k, v in one.items() if not re.fullmatch(rf"-?\d+|{MISSING}", v)}

    def value(name: str, text: str) -> Any:
        if text == MISSING:
            return None if name in words else np.nan
        return text if name in words else int(text)

    return [{name: value(name, text) for name, text in one.items()} for one in named]


def parquet_module(where: str) -> Any:
    """Return pyarrow.parquet; without it raise a MissingExtraError that begins with ``where``."""
    with needed(
        f"{where}: expected pyarrow, found that it is not installed; pip install 'daskdl[parquet]'"
    ):
        import pyarrow.parquet as parquet
    return parquet
