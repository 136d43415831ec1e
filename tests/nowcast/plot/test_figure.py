"""Figures and their colours."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError
from nowcast.plot.figure import (
    COLOURS,
    DRY,
    EXTREME,
    LEVELS,
    METHODS,
    MISSING,
    new_figure,
    rain_colours,
    save,
)


def test_a_figure_is_written_whole_and_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        figure = new_figure(2.0, 1.0)
        figure.subplots().plot([0, 1])
        save(figure, tmp_path / "new" / name, dpi=50)
    first, second = ((tmp_path / "new" / name).read_bytes() for name in ("a.png", "b.png"))
    assert first[:8] == b"\x89PNG\r\n\x1a\n"
    assert first == second


def test_what_was_there_stays_when_drawing_fails(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"older")
    figure = new_figure(1.0, 1.0)
    figure.suptitle("$\\nonsense$")
    with pytest.raises(ValueError, match="nonsense"):
        save(figure, path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_no_state_of_pyplot_is_touched() -> None:
    new_figure(1.0, 1.0)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_missing_matplotlib_is_said_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskdl\[nowcast\]'"):
        new_figure(1.0, 1.0)


#: Complete lack of one kind of cones: Machado, Oliveira and Fernandes (2009, IEEE Transactions on
#: Visualization and Computer Graphics 15), table for severity 1, in linear RGB.
SIGHT = {
    "full": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def lab(colour: str, sight: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE L*a*b* of a colour as it is seen."""
    from skimage.color import rgb2lab

    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = (sight @ linear).clip(0, 1)
    coded = np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)
    return np.asarray(rgb2lab(coded[None, None])[0, 0])


@pytest.mark.parametrize("kind", SIGHT)
def test_every_two_colours_are_told_apart(kind: str) -> None:
    names = (DRY, *COLOURS, EXTREME, MISSING)
    seen = [lab(colour, np.array(SIGHT[kind])) for colour in names]
    for i, one in enumerate(seen):
        for j, other in enumerate(seen[:i]):
            # 2.3 is a difference that is just noticed side by side.
            assert np.linalg.norm(one - other) > 8, (names[i], names[j])


@pytest.mark.parametrize(
    ("rain", "colour"),
    [
        (0.0, DRY),
        (0.0999, DRY),
        (0.1, COLOURS[0]),
        (0.5, COLOURS[1]),
        (1.0, COLOURS[2]),
        (4.99, COLOURS[3]),
        (5.0, COLOURS[4]),
        (99.0, COLOURS[7]),
        (100.0, EXTREME),
        (1e4, EXTREME),
        (np.nan, MISSING),
    ],
)
def test_a_rate_has_the_colour_between_its_edges(rain: float, colour: str) -> None:
    scale, norm = rain_colours()
    assert to_hex(scale(norm(np.ma.masked_invalid([rain])))[0]) == colour


def test_levels_are_those_of_the_legend() -> None:
    _, norm = rain_colours()
    np.testing.assert_array_equal(norm.boundaries, LEVELS)
    assert len(COLOURS) == len(LEVELS) - 1


def test_methods_have_colours_and_markers_of_their_own() -> None:
    colours, marks = ({method[k] for method in METHODS} for k in (0, 1))
    assert len(colours) == len(marks) == len(METHODS)
