"""Figures without a display, and the colours of rain, probabilities and methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daskdl.errors import needed
from daskdl.files import replacing

if TYPE_CHECKING:
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure

#: Grey of ticks, frames and remarks.
FAINT = "#5a5a5a"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure with automatic layout; width and height are in inches.

    Raises MissingExtraError if matplotlib is not installed.
    """
    with needed("pictures need matplotlib ({error}); pip install 'daskdl[nowcast]'"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a figure as PNG; the file is complete or absent."""
    with replacing(Path(path)) as temporary:
        # No date and no version of matplotlib: the same data gives the same bytes.
        figure.savefig(temporary, format="png", dpi=dpi, metadata={"Software": None})


def named_simulated(title: str, simulated: bool, *, lower: bool = False) -> str:
    """Return a title that always names simulated data as such."""
    if not simulated or "simulated" in title.lower():
        return title
    return f"Simulated data: {title[0].lower() if lower else title[0]}{title[1:]}"


#: Edges of the colour scale, mm h-1; below the first it is dry.
LEVELS = (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100)
#: One colour between two edges each. Weak rain is blue, from light to dark; strong rain goes from
#: yellow to dark red. Without red or green sight these hues differ, and lightness within each.
COLOURS = (
    "#d0e4f4", "#97c5e6", "#4f9bd6", "#2262ae", "#ffe04a", "#fca32b", "#e2402a", "#93134a",
)  # fmt: skip
DRY, EXTREME, MISSING = "#ffffff", "#3d0a33", "#d8d8d8"

#: Edges of the scale of probabilities; values below the first count as none.
PROBABILITY_LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: One colour between two edges each, from pale to dark: lightness falls evenly, to be read in grey
#: too, and no hue of the rain occurs, so that nobody takes it for rain.
PROBABILITIES = (
    "#efe9f4", "#dccfe9", "#c8b3dd", "#b497d0", "#a07bc3", "#8b60b4", "#7547a2", "#5f308c",
    "#491b73", "#330a58",
)  # fmt: skip
#: Colour of the observation's outline on a map of probability.
OUTLINE = "#000000"

#: Okabe and Ito's colours with a marker each, which everybody can distinguish, also in grey.
METHODS = (
    ("#0072b2", "o"), ("#7f7f7f", "s"), ("#d55e00", "^"), ("#009e73", "D"), ("#cc79a7", "v"),
    ("#56b4e9", "P"), ("#e69f00", "X"),
)  # fmt: skip


def rain_colours() -> tuple[ListedColormap, BoundaryNorm]:
    """Return the colour map and its norm: white when dry, grey where missing.

    Examples
    --------
    >>> colours, norm = rain_colours()
    >>> float(norm(3.0)) == float(norm(4.0)), float(norm(0.05)) < 0
    (True, True)
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap

    scale = ListedColormap(list(COLOURS), under=DRY, over=EXTREME, bad=MISSING, name="rain")
    return scale, BoundaryNorm(LEVELS, len(COLOURS))


def probability_colours() -> tuple[ListedColormap, BoundaryNorm]:
    """Return the colour map of probabilities and its norm: white below 5 %, grey where missing.

    Examples
    --------
    >>> colours, norm = probability_colours()
    >>> float(norm(0.31)) == float(norm(0.39)), float(norm(0.01)) < 0
    (True, True)
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap

    # A probability of 1 is on the last edge.
    scale = ListedColormap(
        list(PROBABILITIES), under=DRY, over=PROBABILITIES[-1], bad=MISSING, name="probability"
    )
    return scale, BoundaryNorm(PROBABILITY_LEVELS, len(PROBABILITIES))
