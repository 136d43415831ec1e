"""Display: a module as a table of all modules in it, in notebooks."""

from __future__ import annotations

from html import escape

from daskdl.nn.parameter import Parameter
from daskdl.nn.structure import Structure

#: Modules in the table, the first ones.
MOST = 60


def of_module(model: Structure) -> str:
    """Return an HTML table: each module's name, its layer as it was made, and its parameters."""
    rows, seen = [], set[int]()
    for name, module in model.modules():
        own = [p for p in vars(module).values() if isinstance(p, Parameter) and id(p) not in seen]
        seen.update(map(id, own))
        line = repr(module).split("\n")[0].removesuffix("(") if name else type(module).__name__
        size = sum(p.data.size for p in own)
        frozen = " (frozen)" if own and not any(p.requires_grad for p in own) else ""
        rows.append((name or "the model", line, f"{size:,}{frozen}" if own else ""))
    total = sum(p.data.size for p in model.parameters())
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows[:MOST])
    body = "".join(f"<tr>{line}</tr>" for line in cells)
    more = f"<p>and {len(rows) - MOST} more modules</p>" if len(rows) > MOST else ""
    return (
        f"<table><caption>{escape(type(model).__name__)} of {total:,} parameters</caption>"
        "<thead><tr><th>name</th><th>layer</th><th>parameters</th></tr></thead>"
        f"<tbody>{body}</tbody></table>{more}"
    )
