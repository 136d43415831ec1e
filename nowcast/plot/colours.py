"""The colours of rain: one scale for every picture, and the colours of methods beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.colors import BoundaryNorm, ListedColormap

#: Edges of the colour scale, mm h-1; below the first it is dry.
LEVELS = (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100)
#: Between two edges each. Weak rain is blue, from light to dark, strong rain goes from yellow to
#: dark red: the hues that are told apart without red or green sight, and lightness within each.
COLOURS = (
    "#d0e4f4", "#97c5e6", "#4f9bd6", "#2262ae", "#ffe04a", "#fca32b", "#e2402a", "#93134a",
)  # fmt: skip
DRY, EXTREME, MISSING = "#ffffff", "#3d0a33", "#d8d8d8"

#: Okabe and Ito's colours with a marker each, told apart by everybody and in grey.
METHODS = (
    ("#0072b2", "o"), ("#7f7f7f", "s"), ("#d55e00", "^"), ("#009e73", "D"), ("#cc79a7", "v"),
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
