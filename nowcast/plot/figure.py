"""Figures without a display, written to their file at one stroke."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daskdl.errors import MissingExtraError
from nowcast.replacing import beside


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, in inches."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "plots: expected matplotlib, found none; pip install 'daskdl[nowcast]' brings it"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path, dpi: int = 130) -> None:
    """Write a figure as PNG."""
    with beside(path) as temporary:
        figure.savefig(temporary, format="png", dpi=dpi)
