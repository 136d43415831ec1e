"""Plot: the picture of a fit's :class:`~daskdl.train.watch.history.History`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import needed
from daskdl.train.engines.step import PHASES

#: Points of a curve of iterations; of more, means are drawn.
POINTS = 200


def draw(history: Any) -> list[Any]:
    """Draw a new figure and return its Axes."""
    with needed(
        "History.plot: expected matplotlib, found it not installed; pip install daskdl[nowcast]"
    ):
        import matplotlib.pyplot as plt
    metrics = _metrics(history)
    panels = [draw_loss, *([_draw_metrics] if metrics else []), _draw_phases]
    figure, axes = plt.subplots(
        len(panels), 1, sharex=True, figsize=(8, 2.6 * len(panels)), layout="constrained"
    )
    for panel, ax in zip(panels, axes, strict=True):
        panel(history, ax)
        ax.grid(alpha=0.3)
        ax.label_outer()
    figure.suptitle(_title(history), fontsize="medium")
    return list(axes)


def draw_loss(history: Any, ax: Any) -> None:
    """Draw the loss of iterations, epochs and validations."""
    ax.plot(history["loss"], color="0.75", linewidth=0.8, label="iteration")
    for name, label, color in (("loss", "epoch", "C0"), ("val_loss", "validation", "C1")):
        _draw_epochs(history, ax, name, label, color)
    ax.set(xlabel="iteration", ylabel="loss")
    ax.legend()


def _draw_metrics(history: Any, ax: Any) -> None:
    for i, name in enumerate(_metrics(history)):
        _draw_epochs(history, ax, name, f"{name}, training", f"C{i + 2}", linestyle="--")
        _draw_epochs(history, ax, f"val_{name}", name, f"C{i + 2}")
    ax.set(xlabel="iteration", ylabel="metric")
    ax.legend()


def _draw_phases(history: Any, ax: Any) -> None:
    at, heights = _means(history, PHASES)
    shown = [i for i, row in enumerate(heights) if row.any()]
    if shown:
        ax.stackplot(
            at,
            [heights[i] for i in shown],
            labels=[PHASES[i] for i in shown],
            colors=[f"C{i}" for i in shown],
        )
        ax.legend(ncols=len(shown), fontsize="small", loc="upper right")
    total = np.sum(heights, 0)
    if total.any():  # the first iteration loads and compiles
        ax.set_ylim(0, 1.2 * np.percentile(total, 95))
    ax.set(xlabel="iteration", ylabel="seconds of an iteration")


def _draw_epochs(history: Any, ax: Any, name: str, label: str, color: str, **style: Any) -> None:
    points = [(row["iteration"], row[name]) for row in history.epochs if name in row]
    if points:
        marker = "o" if len(points) <= 30 else None
        look = {"marker": marker, "markersize": 4, "label": label, "color": color, **style}
        ax.plot(*zip(*points, strict=True), **look)


def _means(history: Any, names: tuple[str, ...]) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """Return iterations and values of columns; means of neighbours if there are many."""
    n = len(history)
    bounds = np.linspace(0, n, min(n, POINTS) + 1).astype(int)
    lengths = np.diff(bounds)
    sums = [np.add.reduceat(history[name], bounds[:-1]) if n else np.zeros(0) for name in names]
    return bounds[:-1] + lengths / 2, [total / lengths for total in sums]


def _metrics(history: Any) -> list[str]:
    validated = (n.removeprefix("val_") for row in history.epochs for n in row if n[:4] == "val_")
    return [name for name in dict.fromkeys((*history.metrics, *validated)) if name != "loss"]


def _title(history: Any) -> str:
    totals = history.since(0)
    return (
        f"{len(history):,} iterations, {totals['samples']:,} samples, {totals['seconds']:.3g} s, "
        f"{totals['samples_per_second']:.3g} samples/s"
    )
