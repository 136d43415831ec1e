"""Figures without a display, written to their file at one stroke."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daskdl.errors import MissingExtraError
from nowcast.rain.replacing import beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Grey of what is beside the data: ticks, frames, remarks.
FAINT = "#5a5a5a"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches, that lays itself out.

    Raises
    ------
    MissingExtraError
        When matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            f"pictures need matplotlib ({error}); pip install 'daskdl[nowcast]'"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a figure as PNG, whole or not at all."""
    with beside(Path(path)) as temporary:
        # No date and no version of matplotlib: the same data gives the same bytes.
        figure.savefig(temporary, format="png", dpi=dpi, metadata={"Software": None})
