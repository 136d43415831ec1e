"""Columns: an encoder's knowledge of each kind, and the numbers and ids that it makes.

Each is plain data, which a model file keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError

Array = NDArray[Any]
#: A value of a category; a model file can have any of these types.
Value = str | int | float | bool

DAY, YEAR = 86_400.0, 365.2425 * 86_400.0
#: 1970-01-01, from which seconds count, was a Thursday.
FIRST_WEEKDAY = 3


@dataclass(frozen=True)
class Number:
    """A column of numbers: (x - mean) / scale; missing ones are the mean, with a flag.

    Parameters
    ----------
    name : str
    mean, scale : float
        Mean and standard deviation of the finite numbers.
    missing : bool
        Whether a number was missing, so that there is a flag.
    """

    name: str
    mean: float
    scale: float
    missing: bool
    kind: ClassVar[str] = "number"
    rows: ClassVar[int] = 0

    @property
    def width(self) -> int:
        """Number of numbers that it makes of a row."""
        return 1 + self.missing

    def numbers(self, series: Any) -> Array:
        """Return the numbers of a column, float32 (n, width)."""
        values = as_numbers(series)
        there = np.isfinite(values)
        scaled = np.where(there, values - self.mean, 0) / self.scale
        return np.stack([scaled, ~there][: self.width], -1).astype(np.float32)


@dataclass(frozen=True)
class Category:
    """A column of values: each known value has an id from 1 on, all others have 0.

    Parameters
    ----------
    name : str
    values : sequence of str, int, float or bool
        Known values, the most frequent first.
    missing : bool
        Whether a value was missing; missing values then have the last id.
    """

    name: str
    values: Sequence[Value]
    missing: bool
    kind: ClassVar[str] = "category"
    width: ClassVar[int] = 0

    @property
    def rows(self) -> int:
        """Number of ids, with the unknown one."""
        return 1 + len(self.values) + self.missing

    def ids(self, series: Any) -> Array:
        """Return the id of each value of a column, int64 (n,)."""
        ids = codes(series, self.values) + 1
        if self.missing:
            ids[np.asarray(series.isna())] = self.rows - 1
        return ids


@dataclass(frozen=True)
class Date:
    """A column of times: distance, weekday, place in the year and, if there are hours, in the day.

    Places in the year and in the day are sine and cosine; the weekday is an id. A missing time is
    the mean, with a flag.

    Parameters
    ----------
    name : str
    mean, scale : float
        Mean and standard deviation of the seconds since 1970.
    missing : bool
    hours : bool
        Whether a time is not midnight.
    """

    name: str
    mean: float
    scale: float
    missing: bool
    hours: bool
    kind: ClassVar[str] = "date"
    rows: ClassVar[int] = 8

    @property
    def width(self) -> int:
        """Number of numbers that it makes of a row."""
        return 3 + 2 * self.hours + self.missing

    def numbers(self, series: Any) -> Array:
        """Return the numbers of a column, float32 (n, width)."""
        seconds = as_seconds(series)
        there = np.isfinite(seconds)
        seconds = np.where(there, seconds, self.mean)
        year, day = (2 * np.pi * seconds / length for length in (YEAR, DAY))
        made = [(seconds - self.mean) / self.scale, np.sin(year), np.cos(year)]
        made += [np.sin(day), np.cos(day)] * self.hours + [~there] * self.missing
        return np.stack(made, -1).astype(np.float32)

    def ids(self, series: Any) -> Array:
        """Return the weekday of each time, Monday 1 to Sunday 7, int64 (n,); 0 if missing."""
        seconds = as_seconds(series)
        there = np.isfinite(seconds)
        days = np.floor(np.where(there, seconds, 0) / DAY).astype(np.int64)
        return np.where(there, (days + FIRST_WEEKDAY) % 7 + 1, 0)


Column = Number | Category | Date
KINDS: Mapping[str, Callable[..., Column]] = {kind.kind: kind for kind in (Number, Category, Date)}


def plain(column: Column) -> tuple[Any, ...]:
    """Return a column as plain data: its kind, and its fields."""
    return (column.kind, *astuple(column))


def column_of(kind: str, *fields: Any) -> Column:
    """Undo :func:`plain`."""
    return KINDS[kind](*(tuple(f) if isinstance(f, list) else f for f in fields))


def kind_of(dtype: Any) -> str:
    """Return the kind of a column by its dtype in pandas: number, category, date or none."""
    code = getattr(dtype, "kind", "O")
    if code in "iufb" or str(dtype).startswith("decimal"):  # of Arrow
        return "number"
    return {"M": "date", "m": "number", "O": "category", "U": "category"}.get(code, "")


def as_numbers(series: Any) -> Array:
    """Return a column as float64, with NaN for missing values; durations in seconds."""
    if getattr(series.dtype, "kind", "O") == "m":
        return np.asarray(series.dt.total_seconds(), np.float64)
    numbers: Array = series.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def as_seconds(series: Any) -> Array:
    """Return times as seconds since 1970, in UTC if they have a zone; NaN for missing ones."""
    if str(series.dtype).startswith(("date32", "date64")):  # of Arrow, whole days
        series = series.astype("datetime64[ns]")
    if getattr(series.dt, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    times = series.to_numpy(dtype="datetime64[ns]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e9)


def codes(series: Any, values: Sequence[Value]) -> Array:
    """Return the index of each value of a column in ``values``, int64 (n,); -1 if not there."""
    import pandas as pd

    known = pd.Index(list(values), dtype=object)
    try:
        numbers, uniques = pd.factorize(series)
    except TypeError as error:  # which cannot be told from others
        raise DataError(
            f"column {series.name!r}: expected one text, number or time in each cell, found others "
            f"({error}); name it in leave_out=[{series.name!r}]"
        ) from error
    seen = [as_value(v) for v in uniques]
    if all(isinstance(value, str) for value in values):
        # A Dask frame, from which they were learned, made texts of objects.
        seen = [str(value) for value in seen]
    places = known.get_indexer(pd.Index(seen, dtype=object))
    return np.where(numbers < 0, -1, np.append(places, -1)[numbers]).astype(np.int64)


def as_value(value: Any) -> Value:
    """Return a value as plain data; neither text nor a number becomes its text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Decimal):
        raise DataError(
            f"TableEncoder: expected numbers, words or times, found {value!r}; "
            "frame.astype({name: float}) makes numbers of decimals"
        )
    return value if isinstance(value, (str, int, float, bool)) else str(value)
