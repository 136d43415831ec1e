"""Display: a Trainer and its History in a notebook, as tables with a sparkline of the loss."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

#: Size of a sparkline, and how many points it has at most.
WIDTH, HEIGHT, POINTS = 240, 40, 120
#: Epochs in the table of a history, the last ones.
EPOCHS = 10


def sparkline(values: Sequence[float]) -> str:
    """Return a line through the finite numbers as SVG, through means if there are many."""
    numbers = np.asarray(values, np.float64)
    if not np.isfinite(numbers).any():
        return ""
    parts = np.array_split(numbers, min(len(numbers), POINTS))
    means = np.array([p[np.isfinite(p)].mean() if np.isfinite(p).any() else np.nan for p in parts])
    at = np.linspace(1, WIDTH - 1, len(means))[np.isfinite(means)]
    means = means[np.isfinite(means)]
    spread = float(np.ptp(means)) or 1.0
    heights = HEIGHT - 2 - (HEIGHT - 4) * (means - means.min()) / spread
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(at, heights, strict=True))
    label = f"{means[0]:.4g} to {means[-1]:.4g}"
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{label}">'
        f'<title>{label}</title><polyline fill="none" stroke="currentColor" stroke-width="1.5" '
        f'points="{points}"/></svg>'
    )


def of_epochs(epochs: Sequence[Mapping[str, float]], untold: Collection[str]) -> str:
    """Return a table of loss, metrics and speed of epochs, the last ones if there are many."""
    if not epochs:
        return ""
    names = [n for n in dict.fromkeys(n for row in epochs for n in row) if n not in untold]
    names.append("samples_per_second")
    head = "".join(f"<th>{escape(name)}</th>" for name in ("epoch", *names))
    body = "".join(
        f"<tr><td>{int(row['epoch']) + 1}</td>"
        + "".join(f"<td>{row[n]:.4g}</td>" if n in row else "<td></td>" for n in names)
        + "</tr>"
        for row in epochs[-EPOCHS:]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def of_trainer(trainer: Any) -> str:
    """Return a trainer as HTML: its model, settings and history."""
    model = trainer.model
    size = sum(parameter.data.size for parameter in model.parameters())
    rows = {
        "model": f"{escape(type(model).__name__)} of {size:,} parameters",
        "loss": escape(repr(trainer.loss)),
        "optimizer": escape(repr(trainer.optimizer)),
        "metrics": escape(", ".join(trainer.metrics)) or "none",
        "seed": str(trainer.seed),
        "history": trainer.history._repr_html_() if len(trainer.history) else "not fitted yet",
    }
    style = "style='text-align:left'"
    body = "".join(f"<tr><th {style}>{n}</th><td {style}>{v}</td></tr>" for n, v in rows.items())
    return f"<table><caption>Trainer</caption>{body}</table>"
