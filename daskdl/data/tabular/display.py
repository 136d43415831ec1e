"""Display: a table encoder as a table of its columns, in notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

from daskdl.data.tabular.columns import Category, Column

HEADINGS = ("column", "kind", "what is known of it", "numbers", "ids")


def table(title: str, columns: Sequence[Column]) -> str:
    """Return an HTML table with a line for each column."""
    head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _cells(column)) + "</tr>"
        for column in columns
    )
    return (
        f"<p>{html.escape(title)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cells(column: Column) -> tuple[str, ...]:
    if isinstance(column, Category):
        said = f"{len(column.values):,} values, such as {', '.join(map(str, column.values[:3]))}"
    else:
        said = f"mean {column.mean:.4g}, standard deviation {column.scale:.4g}"
    said += ", some missing" if column.missing else ""
    return column.name, column.kind, said, str(column.width), str(column.rows or "")
