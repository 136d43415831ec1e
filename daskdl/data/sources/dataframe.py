"""DataFrames: columns of pandas and Dask DataFrames as samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.data.lazy.counting import Uncounted
from daskdl.data.lazy.derived import Loaded
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.nested import flat
from daskdl.data.ragged import Ragged, stacked
from daskdl.data.recipe import Arrays, Recipe
from daskdl.data.sources.collections import tasks_by_partition
from daskdl.data.sources.records import Records, check_on_error
from daskdl.data.tabular.encoder import TableEncoder
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet

#: A column, or several that stand side by side on a last axis.
Field = str | Sequence[str]


def columns_of(fields: Mapping[str, Field]) -> list[str]:
    """Return every column that fields use, once."""
    several = ([f] if isinstance(f, str) else f for f in fields.values())
    return list(dict.fromkeys(column for some in several for column in some))


@dataclass(frozen=True)
class Columns:
    """Make a partition of a pandas DataFrame, which errors call ``name``.

    ``decode`` makes an array of each value of a column, such as the bytes of an image; ``on_error``
    is for values that it cannot decode.
    """

    fields: Mapping[str, Field]
    decode: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    on_error: str = "raise"
    name: str = "DataFrame"

    def __post_init__(self) -> None:
        if not self.fields:
            raise SettingsError(
                "SampleSet: expected the columns to use, such as x='image', found none"
            )
        other = sorted(set(self.decode) - {n for n, f in self.fields.items() if isinstance(f, str)})
        if other:
            raise SettingsError(
                f"decode: expected names of single columns among {sorted(self.fields)}, found "
                f"{other}"
            )

    @property
    def needed(self) -> list[str]:
        """Every column that is used, once."""
        return columns_of(self.fields)

    def check(self, names: Iterable[Any]) -> None:
        """Raise a DataError for columns that are missing, or that occur more than once."""
        missing = sorted(set(self.needed) - set(names))
        if missing:
            raise DataError(
                f"{self.name}: expected columns {self.needed}, found none called {missing}; there "
                f"are {sorted(map(str, names))}"
                "; name columns of the table, as in x=['a', 'b'], y='c'"
            )
        twice = [name for name in self.needed if list(names).count(name) > 1]
        if twice:
            raise DataError(
                f"{self.name}: expected one column called {twice[0]!r}, found several; rename them"
            )

    def __call__(self, frame: Any) -> Arrays:
        """Return the partition."""
        self.check(frame.columns)
        by_name = {
            name: self._one(frame, f) if isinstance(f, str) else self._side_by_side(frame, f)
            for name, f in self.fields.items()
            if name not in self.decode
        }
        if not self.decode:
            return Arrays(by_name)
        values = [frame[self.fields[name]] for name in self.decode]
        rows = enumerate(zip(*values, strict=True))
        decoded = Records(self._decoded, self.on_error, f"{self.name}, row")(rows)
        if not len(decoded):
            return Arrays({}, decoded.bad)
        good = decoded.arrays["row"]
        both = {**{n: column[good] for n, column in by_name.items()}, **decoded.arrays}
        return Arrays({name: both[name] for name in self.fields}, decoded.bad)

    def _one(self, frame: Any, column: str) -> Any:
        return _column(frame[column], f"{self.name}, column {column!r}")

    def _side_by_side(self, frame: Any, columns: Sequence[str]) -> Any:
        values = [self._one(frame, column) for column in columns]
        # In an array with lengths of time, numpy takes whole numbers for microseconds.
        mixed = len({value.dtype.kind in "biufc" or value.dtype.kind for value in values}) > 1
        try:
            if not mixed and not any(isinstance(value, Ragged) for value in values):
                return np.stack(values, axis=-1)
        except (TypeError, ValueError):  # of words, which numpy does not stack, or other shapes
            pass
        kinds = {column: str(frame[column].dtype) for column in columns}
        raise DataError(
            f"{self.name}: expected columns that stand side by side to be of one kind and shape, "
            f"found {kinds}; make numbers of words and times first, for instance by "
            "pandas.get_dummies, and give lists a name each, as in x=('words', 'tags')"
        )

    def _decoded(self, row: tuple[int, tuple[Any, ...]]) -> dict[str, Any]:
        i, values = row
        decoded = zip(self.decode.items(), values, strict=True)
        return {"row": i, **{name: decode(value) for (name, decode), value in decoded}}


def _column(series: Any, where: str) -> Any:
    """Return a column as numbers, times, strings or ragged sequences; NaN for missing numbers."""
    kind = getattr(series.dtype, "kind", "O")
    if kind in "biufcmM" and isinstance(series.dtype, np.dtype):
        return np.ascontiguousarray(series.to_numpy())
    if hasattr(series, "sparse"):
        return series.sparse.to_dense().to_numpy()
    if kind in "biuf":
        missing = series.isna().any()
        return (
            series.to_numpy(dtype=float, na_value=np.nan)
            if missing
            else series.to_numpy(dtype=series.dtype.numpy_dtype)
        )
    values = series.tolist() if kind != "O" else list(series)
    if kind == "O":
        missing = series.isna()
        numbers = [value for value, gone in zip(values, missing, strict=True) if not gone]
        gaps = missing.any() or any(isinstance(value, Decimal) for value in numbers)
        if gaps and numbers and all(isinstance(v, Real | Decimal | np.bool_) for v in numbers):
            return series.where(~missing, np.nan).to_numpy(float)
        values = _whole(values)
    return stacked(values, where) if values else np.empty(0, object)


def _whole(values: list[Any]) -> list[Any]:
    """Return lists of lists, which Arrow gives as arrays of arrays, as one array for each value.

    Lists of numbers with gaps, and of decimals, become floats. Others do not change, nor do lists
    of lists that differ in length.
    """
    try:
        return [np.stack(_whole([*v])) if _is_nested(v) else _floats(v) for v in values]
    except ValueError:
        return values


def _is_nested(value: Any) -> bool:
    first = value[0] if isinstance(value, np.ndarray) and len(value) else None
    return isinstance(first, np.ndarray) and value.dtype.kind == "O"


def _floats(value: Any) -> Any:
    """Return a list of numbers with gaps, or of decimals, as floats; other values unchanged."""
    if not isinstance(value, list) and getattr(value, "dtype", None) != "O":
        return value
    kinds = set(map(type, value))
    numbers = kinds - {NoneType}
    gaps = numbers != kinds or Decimal in numbers
    if not (gaps and numbers and all(issubclass(kind, Real | Decimal) for kind in numbers)):
        return value
    return np.array(value, float)


@dataclass(frozen=True)
class Encoded:
    """Make a partition of a pandas DataFrame by an encoder, with further columns unchanged."""

    encoder: TableEncoder
    columns: Columns | None
    name: str = "DataFrame"

    def __call__(self, frame: Any) -> Arrays:
        """Return the partition."""
        more = {} if self.columns is None else self.columns(frame).arrays
        return Arrays({**self.encoder(frame, self.name).arrays, **more})


def from_dataframe(
    cls: type[SampleSet],
    /,
    frame: Any,
    *,
    target: str | None = None,
    encoder: TableEncoder | None = None,
    decode: Mapping[str, Callable[[Any], Any]] | None = None,
    on_error: str = "raise",
    **fields: Field,
) -> SampleSet:
    """Make a set of the rows of a pandas or Dask DataFrame, with its partitions.

    Parameters
    ----------
    frame : pandas.DataFrame or dask.dataframe.DataFrame
    target : str, optional
        The column to predict from all others, which may hold numbers, words, dates and gaps. An
        encoder is fitted to them in one pass and kept as :attr:`encoder`; see
        :class:`daskdl.data.tabular.TableEncoder` and :class:`daskdl.models.TabularNet`.
    encoder : TableEncoder, optional
        An encoder that was fitted to another table, such as the training set.
    decode : mapping of name to callable, optional
        Makes an array of each value of a column, such as an image of bytes.
    on_error : "raise" or "skip"
        What to do with values that cannot be decoded, see :meth:`from_bag`.
    **fields : str or list of str
        A column for each name, or several that are stacked on a last axis, as in ``x=["age",
        "weight"], y="label"``. Columns of lists become Ragged.
    """
    check_on_error(on_error)
    fields = flat(fields)
    if target is not None and encoder is None:
        encoder = TableEncoder.fit(frame, target=target, leave_out=columns_of(fields))
    columns: Any = None
    if fields or encoder is None:
        columns = Columns(fields, decode or {}, on_error)
        columns.check(frame.columns)
    if encoder is not None:
        columns = Encoded(encoder, columns)
    recipes: list[Recipe]
    if hasattr(frame, "__dask_graph__"):
        recipes = [
            Uncounted(FromTasks(tasks, (key,), replace(columns, name=f"partition {i}"), None, 0))
            for i, (tasks, key) in enumerate(tasks_by_partition(frame))
        ]
    else:
        partition: Arrays = columns(frame)
        recipes = [Uncounted(Loaded(partition)) if on_error == "skip" else partition]
    samples = cls(recipes)
    samples.encoder = encoder
    return samples
