"""SQL: rows of a PostgreSQL table as samples; workers read ranges of a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from daskdl.data.lazy.counting import Uncounted
from daskdl.data.recipe import Arrays, Excerpt, Recipe
from daskdl.data.samples import SampleSet
from daskdl.data.sources.dataframe import Columns, Field
from daskdl.data.sources.records import check_on_error
from daskdl.data.sources.zarr import PARTITION_BYTES
from daskdl.errors import DataError, SettingsError, needed

#: Ranges that are counted when they are going to be put together.
RANGES = 1000
#: Seconds for a connection, unless it says so itself.
CONNECT_SECONDS = 10

#: The transaction that wrote a row. Later ones have higher numbers, so that the sum over as many
#: rows is another once any of them was changed, or went and another came.
_WRITTEN = "xmin::text::bigint"

_SECRETS = ("password", "sslpassword")
_LENGTHS = frozenset({17, 25, 1042, 1043})  # bytea, text, bpchar, varchar: known without reading
_DTYPES = {
    16: np.bool_, 20: np.int64, 21: np.int16, 23: np.int32, 700: np.float32, 701: np.float64,
    1700: np.float64,
}  # fmt: skip


def from_table(
    connection: str,
    table: str,
    *,
    key: str,
    partitions: int | None = None,
    where: str | None = None,
    password: str | None = None,
    decode: Mapping[str, Callable[[Any], Any]] | None = None,
    on_error: str = "raise",
    **fields: Field,
) -> SampleSet:
    """Make samples of the rows of a PostgreSQL table, in the order of a key.

    The table is counted once, here. Each partition is a range of the key; each worker reads over
    its own connection. Needs psycopg: ``pip install 'daskdl[sql]'``.

    Parameters
    ----------
    connection : str
        ``postgresql://user@host/database`` or ``host=... dbname=...``, as libpq takes it. libpq
        looks for missing parts, such as a password, on each worker: ``PGPASSFILE``, ``~/.pgpass``,
        a service file.
    table : str
        Table or view, maybe with a schema: ``"archive.images"``.
    key : str
        A column of unique values with an order, best with an index: the primary key.
    partitions : int, optional
        Number of partitions with nearly equal rows; by default about 64 MB each.
    where : str, optional
        A condition in SQL on the rows. It is run unchanged.
    password : str, optional
        Sent to the workers with their tasks. No error, repr or log shows it, nor a password inside
        of ``connection``.
    decode : mapping of name to callable, optional
        Makes an array of each value of a column, such as an image of bytes.
    on_error : "raise" or "skip"
        What to do with values that cannot be decoded, see :meth:`SampleSet.from_bag`.
    **fields : str or list of str
        A column for each name, or several that are stacked, as in ``x="pixels", y="label"``.
        Numbers keep their width (``numeric`` becomes float64, NULL becomes NaN); ``bytea`` becomes
        bytes, SQL's arrays arrays or :class:`~daskdl.data.Ragged`, and text, enumerations and
        types that psycopg does not know strings.

    Raises
    ------
    DataError
        When the server, the table or a column is not available, there are no rows, or the key is
        NULL or not unique. Later when a range has other rows than were counted, or when a table's
        rows were written since (a view's rows are only counted).
    """
    check_on_error(on_error)
    if partitions is not None and partitions < 1:
        raise SettingsError(f"from_table, partitions: expected at least 1, found {partitions!r}")
    source = Table(Connection.of(connection, password), table, key, where)
    columns = Columns(fields, decode or {}, on_error, table)
    recipes: list[Recipe] = []
    for low, high, rows, nbytes, written in source.ranges(columns.needed, partitions):
        named = replace(columns, name=f"{table}, {key} from {low} to {high}")
        recipe = KeyRange(source, named, low, high, 0, rows, rows, nbytes / rows, written)
        recipes.append(Uncounted(recipe) if on_error == "skip" else recipe)
    return SampleSet(recipes)


@dataclass(frozen=True)
class Connection:
    """Address of a server, without the passwords, and the passwords, which no repr shows."""

    settings: Mapping[str, str]
    secrets: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, connection: str, password: str | None) -> Connection:
        """Take a connection string apart."""
        psycopg = _psycopg()
        try:
            settings = {k: str(v) for k, v in psycopg.conninfo.conninfo_to_dict(connection).items()}
        except psycopg.ProgrammingError:
            # Without what was found: a part of it may be a password.
            raise SettingsError(
                "from_table, connection: expected postgresql://user@host/database or host=... "
                "dbname=..., found something else; write characters such as @ and spaces in a URL "
                "as %40 and %20"
            ) from None
        secrets = {name: settings.pop(name) for name in _SECRETS if name in settings}
        if password is not None:
            secrets["password"] = password
        return cls({"connect_timeout": str(CONNECT_SECONDS)} | settings, secrets)

    def __str__(self) -> str:
        names = ("host", "port", "dbname", "user", "service")
        return " ".join(f"{n}={self.settings[n]}" for n in names if n in self.settings)

    @contextmanager
    def opened(self, table: str) -> Iterator[Any]:
        """Open a connection that only reads; its errors become DataErrors without a password."""
        psycopg = _psycopg()
        try:
            with psycopg.connect(**self.settings, **self.secrets) as connection:
                connection.read_only = True
                yield connection
        except psycopg.Error as error:
            message = f"{self}, found {type(error).__name__}: {' '.join(str(error).split())}"
            for secret in self.secrets.values():
                message = message.replace(secret, "***") if secret else message
            raise DataError(f"{table}: expected to read it from PostgreSQL at {message}") from None


class Range(NamedTuple):
    """First and last key of a range, its rows, their bytes, a checksum of their transactions."""

    low: Any
    high: Any
    rows: int
    nbytes: int
    written: int | None


@dataclass(frozen=True)
class Table:
    """A table's rows that meet a condition, in the order of a key."""

    connection: Connection
    name: str
    key: str
    where: str | None

    def ranges(self, columns: Sequence[str], partitions: int | None) -> list[Range]:
        """Count the table; return its ranges."""
        sql = _psycopg().sql
        with self.connection.opened(self.name) as connection:
            written = sql.SQL(_WRITTEN if self._is_stored(connection) else "NULL::bigint")
            some = connection.execute(self._select(columns, sql.SQL("LIMIT 0")))
            size = sql.SQL(" + ").join(
                sql.SQL("coalesce({}({}), 0)::bigint").format(
                    sql.SQL("octet_length" if kind.type_code in _LENGTHS else "pg_column_size"),
                    sql.Identifier(name),
                )
                for name, kind in zip(columns, some.description, strict=True)
            )
            key = sql.Identifier(self.key)
            query = sql.SQL(
                "SELECT min({key}), max({key}), count(*), sum(size)::bigint, "
                "sum(written)::numeric, count(DISTINCT {key}) FROM (SELECT {key}, {size} AS size, "
                "{written} AS written, ntile({n}) OVER (ORDER BY {key}) AS part {rows}) AS counted "
                "GROUP BY part ORDER BY part"
            ).format(
                key=key, size=size, n=sql.Literal(partitions or RANGES), rows=self._from(),
                written=written,
            )  # fmt: skip
            counted = connection.execute(query).fetchall()
        if not counted:
            found_none = f"{self.name}: expected rows, found none {self.where or ''}".rstrip()
            raise DataError(f"{found_none}; look at the table and at where=")
        before = None
        for low, high, rows, *_, different in counted:
            if different != rows or (before is not None and low == before):
                raise DataError(
                    f"{self.name}: expected {self.key!r} to have a different value in each row, "
                    f"found one that is NULL or occurs twice between {low} and {high}; give the "
                    "primary key"
                )
            before = high
        parts = [
            Range(low, high, rows, nbytes, None if written is None else int(written))
            for low, high, rows, nbytes, written, _ in counted
        ]
        return parts if partitions else _together(parts)

    def _is_stored(self, connection: Any) -> bool:
        """Return whether rows have the transaction that wrote them; rows of views do not."""
        query = "SELECT relkind IN ('r', 'm', 'p') FROM pg_class WHERE oid = to_regclass(%s)"
        kind = connection.execute(query, [self._table().as_string(connection)]).fetchone()
        return bool(kind and kind[0])

    def read(self, columns: Sequence[str], part: KeyRange, limit: int) -> tuple[Any, int | None]:
        """Return rows of a range as a DataFrame, up to one more than expected.

        Also return ``part.written`` after the reading, if it is known.
        """
        sql = _psycopg().sql
        between = sql.SQL("{} BETWEEN {} AND {}").format(
            sql.Identifier(self.key), sql.Literal(part.low), sql.Literal(part.high)
        )
        with self.connection.opened(self.name) as connection, connection.cursor(binary=True) as c:
            order = sql.SQL("ORDER BY {} OFFSET {} LIMIT {}").format(
                sql.Identifier(self.key), sql.Literal(part.start), sql.Literal(limit)
            )
            c.execute(self._select(columns, order, between))
            binary = _psycopg().pq.Format.BINARY
            unknown = [
                kind.name
                for kind in c.description
                if c.adapters.get_loader(kind.type_code, binary) is None and kind.name != self.key
            ]
            if unknown:  # such as enumerations, of which psycopg gives the server's own bytes
                c.execute(self._select(columns, order, between, unknown))
            frame, written = _frame(c.description, c.fetchall()), None
            if part.written is not None:
                query = sql.SQL("SELECT sum({})::numeric {}")
                c.execute(query.format(sql.SQL(_WRITTEN), self._from(between)))
                written = int(c.fetchone()[0] or 0)
            return frame, written

    def _select(
        self, columns: Sequence[str], rest: Any, more: Any = None, texts: Sequence[str] = ()
    ) -> Any:
        sql = _psycopg().sql
        names = [
            sql.SQL("{0}::text AS {0}" if name in texts else "{0}").format(sql.Identifier(name))
            for name in columns
        ]
        return sql.SQL("SELECT {} {} {}").format(sql.SQL(", ").join(names), self._from(more), rest)

    def _table(self) -> Any:
        return _psycopg().sql.Identifier(*self.name.split("."))

    def _from(self, more: Any = None) -> Any:
        """Return the end of a query: the table and the conditions."""
        sql = _psycopg().sql
        conditions = [] if self.where is None else [sql.SQL("({})").format(sql.SQL(self.where))]
        conditions += [] if more is None else [more]
        where = sql.SQL(" WHERE " * bool(conditions)) + sql.SQL(" AND ").join(conditions)
        return sql.SQL("FROM ") + self._table() + where


@dataclass(frozen=True)
class KeyRange(Excerpt):
    """Recipe of rows ``start`` to ``stop`` of a range of keys with ``rows`` rows."""

    table: Table
    columns: Columns
    low: Any
    high: Any
    start: int
    stop: int
    rows: int
    row_bytes: float = field(repr=False)
    written: int | None = field(default=None, repr=False)

    @property
    def version(self) -> str:
        """Rows of the whole range, and a checksum of the transactions that wrote them."""
        if self.written is None:
            return ""
        return f"{self.columns.name}: {self.rows} rows by transactions of {self.written}"

    @property
    def nbytes(self) -> int:
        """Bytes in the server before compression."""
        return int(self.row_bytes * len(self))

    @property
    def decodes(self) -> bool:
        """Whether a function makes values of a column."""
        return bool(self.columns.decode)

    def load(self) -> Arrays:
        """Read the needed columns.

        Raises
        ------
        DataError
            When there are other rows than were counted, or some were written since.
        """
        whole = self.stop == self.rows  # then there should not be one more
        frame, written = self.table.read(self.columns.needed, self, len(self) + whole)
        if len(frame) != len(self):
            raise DataError(
                f"{self.columns.name}: expected {len(self)} rows from the {self.start}th on, as "
                f"were counted, found {'more' if len(frame) > len(self) else len(frame)}; the "
                "table has changed: make the samples anew"
            )
        if written != self.written:
            raise DataError(
                f"{self.columns.name}: expected the {self.rows} rows that the samples were made "
                "of, found some that were written since; make the samples anew, and begin "
                "training anew"
            )
        return self.columns(frame)


def _together(parts: list[Range]) -> list[Range]:
    """Join neighbouring ranges up to about PARTITION_BYTES."""
    joined = parts[:1]
    for part in parts[1:]:
        low, _, rows, nbytes, written = joined[-1]
        if nbytes + part.nbytes > PARTITION_BYTES:
            joined.append(part)
            continue
        both = None if part.written is None else (written or 0) + part.written
        joined[-1] = Range(low, part.high, rows + part.rows, nbytes + part.nbytes, both)
    return joined


def _frame(description: Any, rows: Sequence[tuple[Any, ...]]) -> Any:
    import pandas as pd

    columns = zip(*rows, strict=True) if rows else [() for _ in description]
    series = {}
    for kind, column in zip(description, columns, strict=True):
        dtype, values = _DTYPES.get(kind.type_code), list(column)
        if dtype is not None and None in values:
            dtype = np.float32 if dtype is np.float32 else np.float64
            values = [np.nan if value is None else value for value in values]
        series[kind.name] = pd.Series(values, dtype=dtype or object)
    return pd.DataFrame(series)


def _psycopg() -> Any:
    with needed(
        "from_table: expected psycopg, found that it is not installed or finds no libpq; "
        "pip install 'daskdl[sql]'"
    ):
        import psycopg
        import psycopg.conninfo
        import psycopg.sql
    return psycopg
