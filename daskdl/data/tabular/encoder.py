"""TableEncoder: rows of a DataFrame as numbers, ids and labels, fitted in one pass."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from daskdl.data.recipe import Arrays
from daskdl.data.tabular.columns import (
    Array,
    Category,
    Column,
    Date,
    Number,
    Value,
    as_numbers,
    codes,
    column_of,
    kind_of,
    plain,
)
from daskdl.data.tabular.statistics import Moments, Values, statistics
from daskdl.errors import DataError, SettingsError


@dataclass(frozen=True)
class TableEncoder:
    """An encoder of a table's rows as samples, fitted to its columns.

    A sample has ``x.numbers`` float32 (k,) and ``x.ids`` int64 (c,). ``y`` is the label's number
    from 0, or float32 (1,) for a target of numbers. Numbers are scaled; missing ones are the mean,
    with a flag. Categories and strings are ids; 0 is unknown. Dates are several numbers, see
    :mod:`daskdl.data.tabular.columns`. :meth:`fit` makes an encoder.

    Parameters
    ----------
    columns : sequence of Number, Category or Date
        Columns of the inputs.
    target : str, optional
        Column to predict.
    classes : sequence of str, int, float or bool
        Labels in the order of their numbers; none for a target of numbers.
    mean, scale : float
        Mean and standard deviation of a target of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, None, 40.0], "city": list("AAB"), "ok": list("nyy")})
    >>> encoder = TableEncoder.fit(frame, target="ok", rare=1)
    >>> encoder.classes
    ('n', 'y')
    >>> encoder(frame).arrays["x.ids"].tolist()
    [[1], [1], [2]]
    """

    columns: tuple[Column, ...]
    target: str | None = None
    classes: tuple[Value, ...] = ()
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(
        cls,
        frame: Any,
        *,
        target: str | None = None,
        task: str = "auto",
        categories: Sequence[str] = (),
        leave_out: Sequence[str] = (),
        rare: int = 2,
        most: int = 100_000,
    ) -> Self:
        """Learn the columns of a table, in one pass over its partitions, where they are.

        Parameters
        ----------
        frame : pandas.DataFrame or dask.dataframe.DataFrame
        target : str, optional
        task : "classes", "numbers" or "auto"
            Kind of the target; by default floats are numbers, everything else is classes.
        categories : sequence of str
            Columns of numbers that are names, such as a postal code.
        leave_out : sequence of str
            Columns that are not inputs.
        rare : int
            A value of a category that occurs less often is unknown, so that the model also learns
            from unknown values.
        most : int
            Largest number of known values of a category; the most frequent ones are kept.

        Raises
        ------
        DataError
            For a missing column, or one of an unusable type.
        SettingsError
            For another task.
        """
        if task not in ("auto", "classes", "numbers"):
            raise SettingsError(
                f"TableEncoder.fit, task: expected 'auto', 'classes' or 'numbers', found {task!r}"
            )
        there = list(frame.columns)
        _check_names(there)
        named = [*([] if target is None else [target]), *categories, *leave_out]
        missing = sorted(set(named) - set(there))
        if missing:
            raise DataError(
                f"TableEncoder.fit: expected columns {named}, found none called {missing}; there "
                f"are {there}"
            )
        kinds = {}
        for name in there:
            if name in leave_out:
                continue
            kind = "category" if name in categories else kind_of(frame[name].dtype)
            if name == target:
                kind = _kind_of_target(frame[name].dtype, task)
            if not kind:
                raise DataError(
                    f"TableEncoder.fit, column {name!r}: expected numbers, words or times, found "
                    f"{frame[name].dtype}; convert it, or name it in leave_out=[{name!r}]"
                )
            kinds[name] = kind
        by_column = statistics(frame, kinds)
        columns = tuple(
            _column(name, kinds[name], by_column[name], rare, most)
            for name in kinds
            if name != target
        )
        if not columns:
            raise DataError("TableEncoder.fit: expected columns to learn from, found none")
        if target is None:
            return cls(columns)
        of_target = by_column[target]
        if isinstance(of_target, Values):
            labels = sorted(of_target.counts, key=lambda v: (isinstance(v, str), v))
            return cls(columns, target, tuple(labels))
        return cls(columns, target, (), of_target.mean, of_target.scale)

    @property
    def numbers(self) -> int:
        """Number of numbers of a sample."""
        return sum(column.width for column in self.columns)

    @property
    def rows(self) -> tuple[int, ...]:
        """Number of values of each id of a sample, with the unknown one."""
        return tuple(column.rows for column in self.columns if column.rows)

    @property
    def outputs(self) -> int:
        """Number of a model's results: a score for each class, or one number."""
        return len(self.classes) or 1

    def inputs(self, frame: Any) -> dict[str, Array]:
        """Return the model's inputs by name, for the rows of a pandas DataFrame."""
        self._check(frame)
        n = len(frame)
        numbers = [c.numbers(frame[c.name]) for c in self.columns if not isinstance(c, Category)]
        ids = [c.ids(frame[c.name]) for c in self.columns if not isinstance(c, Number)]
        return {
            "numbers": np.concatenate(numbers or [np.zeros((n, 0), np.float32)], axis=1),
            "ids": np.stack(ids, 1) if ids else np.zeros((n, 0), np.int64),
        }

    def labels(self, frame: Any, name: str = "DataFrame") -> Array:
        """Return the targets of a pandas DataFrame's rows: int64 (n,), or float32 (n, 1)."""
        if self.target is None or self.target not in frame.columns:
            raise DataError(
                f"{name}: expected the target {self.target!r} as a column, found "
                f"{list(map(str, frame.columns))}"
            )
        column = frame[self.target]
        wrong, expected = np.zeros(0, bool), "a number"
        if self.classes:
            targets = codes(column, self.classes)
            wrong, expected = targets < 0, f"one of {_some(self.classes)}, which it was fitted to"
        else:
            targets = as_numbers(column).astype(np.float32)[:, None]
            wrong = ~np.isfinite(targets[:, 0])
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"{name}, row {row}, column {self.target!r}: expected {expected}, found "
                f"{column.iloc[row]!r}, and {int(wrong.sum()) - 1} more such rows; leave them "
                "out, as by frame.dropna(subset=[...])"
            )
        return targets

    def __call__(self, frame: Any, name: str = "DataFrame") -> Arrays:
        """Return a pandas DataFrame's rows as a partition, with the targets if it has them."""
        arrays = {f"x.{key}": value for key, value in self.inputs(frame).items()}
        if self.target is not None:
            arrays["y"] = self.labels(frame, name)
        return Arrays(arrays)

    def plain(self) -> tuple[Any, ...]:
        """Return it as plain data, which a model file keeps; :meth:`from_plain` reads it."""
        columns = tuple(map(plain, self.columns))
        return columns, self.target, tuple(self.classes), self.mean, self.scale

    @classmethod
    def from_plain(cls, columns: Any, target: Any, classes: Any, mean: Any, scale: Any) -> Self:
        """Undo :meth:`plain`."""
        return cls(tuple(column_of(*c) for c in columns), target, tuple(classes), mean, scale)

    def __repr__(self) -> str:
        kinds = [column.kind for column in self.columns]
        counts = ", ".join(f"{kinds.count(k)} of {k}" for k in dict.fromkeys(kinds))
        kind = f"{len(self.classes)} classes" if self.classes else "numbers"
        target = "" if self.target is None else f" -> {self.target!r}, {kind}"
        return f"TableEncoder({len(kinds)} columns ({counts}){target})"

    def _repr_html_(self) -> str:
        import pandas as pd

        with pd.option_context("display.max_colwidth", None):
            known = pd.DataFrame(map(_cells, self.columns), columns=HEADINGS).to_html(index=False)
        return f"<p>{html.escape(repr(self))}</p>{known}"

    def _check(self, frame: Any) -> None:
        missing = [c.name for c in self.columns if c.name not in frame.columns]
        if missing:
            raise DataError(
                f"TableEncoder: expected the columns that it was fitted to, found none called "
                f"{missing}; there are {list(map(str, frame.columns))}"
            )
        for c in self.columns:
            kind = kind_of(frame[c.name].dtype)
            if kind != c.kind and (isinstance(c, Date) or kind not in ("number", "category")):
                raise DataError(
                    f"TableEncoder, column {c.name!r}: expected {c.kind}s, as it was fitted to, "
                    f"found {frame[c.name].dtype}; convert it as before"
                )


def _check_names(names: Sequence[Any]) -> None:
    """Raise a DataError unless all columns' names are different texts."""
    others = [name for name in names if not isinstance(name, str)]
    if others:
        raise DataError(
            f"TableEncoder.fit: expected columns called by texts, found {others[0]!r}; "
            "frame.columns = [str(name) for name in frame.columns] calls them so"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(
            f"TableEncoder.fit: expected each column once, found several called {twice}; rename "
            "them, or choose columns by df[[...]]"
        )


def _kind_of_target(dtype: Any, task: str) -> str:
    if getattr(dtype, "kind", "O") in "mM" and task != "numbers":
        raise DataError(
            f"TableEncoder.fit, target: expected classes that are texts, numbers or categories, "
            f"found {dtype}; frame[target].astype(str) makes texts of times"
        )
    if task == "auto":
        real = getattr(dtype, "kind", "O") == "f" or str(dtype).startswith("decimal")
        task = "numbers" if real else "classes"
    return "category" if task == "classes" else "number"


def _column(name: str, kind: str, learned: Moments | Values, rare: int, most: int) -> Column:
    if isinstance(learned, Values):
        return Category(name, tuple(learned.most(rare, most)), learned.missing > 0)
    if kind == "date":
        return Date(name, learned.mean, learned.scale, learned.missing > 0, learned.hours)
    return Number(name, learned.mean, learned.scale, learned.missing > 0)


def _some(values: Sequence[Value]) -> str:
    shown = ", ".join(map(repr, values[:5]))
    return f"{shown}, ... ({len(values)} in all)" if len(values) > 5 else shown


HEADINGS = ("column", "kind", "values", "numbers", "ids")


def _cells(column: Column) -> tuple[str, ...]:
    if isinstance(column, Category):
        summary = f"{len(column.values):,} values, such as {', '.join(map(str, column.values[:3]))}"
    else:
        summary = f"mean {column.mean:.4g}, standard deviation {column.scale:.4g}"
    summary += ", some missing" if column.missing else ""
    return column.name, column.kind, summary, str(column.width), str(column.rows or "")
