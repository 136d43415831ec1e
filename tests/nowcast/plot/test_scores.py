"""The picture of scores, and the figures and colours of all pictures."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError
from nowcast.plot import plot_scores, scores
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
from tests.nowcast.plot.pictures import pixels, share

FORECASTERS, LEADS, THRESHOLDS, SCALES = (
    ("model", "persistence"),
    6,
    (0.1, 1.0, 5.0, 90.0),
    (1.0, 5, 20),
)


def made(gain: float = 0.1, **attrs: object) -> xr.Dataset:
    """Scores that fall with the lead time; the model's are better by ``gain``."""
    fall = 0.8 - 0.1 * np.arange(LEADS)
    csi = np.stack([fall + gain, fall])[:, :, None] * np.array([1.0, 0.8, 0.5, np.nan])
    fss = csi[..., None] * np.array([0.7, 0.8, 1.0])
    where = ("forecaster", "lead_time", "threshold")
    return xr.Dataset(
        {
            "csi": (where, csi),
            "pod": (where, csi),
            "far": (where, 1 - csi),
            "bias": (where, 1 + 0 * csi),
            "mae": (("forecaster", "lead_time"), 1 - csi[..., 0]),
            "fss": ((*where, "scale"), fss),
            "events": (("lead_time", "threshold"), np.full((LEADS, 4), 250)),
        },
        coords={
            "forecaster": list(FORECASTERS),
            "lead_time": np.arange(1, LEADS + 1) * np.timedelta64(600, "s").astype("m8[ns]"),
            "threshold": list(THRESHOLDS),
            "scale": list(SCALES),
        },
        attrs={"n_cases": 12, "source": "Rain rate of behel", **attrs},
    )


@pytest.fixture
def drawn(monkeypatch):
    """Figures that were drawn, in place of files."""
    figures: list[Figure] = []
    monkeypatch.setattr(scores, "save", lambda figure, path: figures.append(figure))
    return figures


@pytest.mark.slow
def test_a_written_picture_shows_the_scores(tmp_path):
    plot_scores(made().isel(threshold=[1, 3]), tmp_path / "a.png")
    plot_scores(made(0.15).isel(threshold=[1, 3]), tmp_path / "b.png")
    one, other = pixels(tmp_path / "a.png"), pixels(tmp_path / "b.png")
    assert one.shape == other.shape
    assert (one != other).any(axis=-1).mean() > 0.001
    for colour, _ in METHODS[:2]:
        assert share(one, colour) > 0.001
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]


def test_lines_are_the_scores(drawn, tmp_path):
    plot_scores(made(), tmp_path / "x.png")
    (figure,) = drawn
    # Three thresholds had events: a column for each, and one for MAE and bias.
    assert len(figure.axes) == 2 * 4
    csi, fss, mae, bias = (figure.axes[k] for k in (1, 5, 3, 7))
    for axes, name in (
        (csi, "CSI, 1 "),
        (fss, "FSS at +30 min, 1 "),
        (mae, "mean abs"),
        (bias, "freq"),
    ):
        assert axes.get_title().startswith(name)
    for number, forecaster in enumerate(FORECASTERS):
        at = made().isel(forecaster=number)
        assert csi.lines[number].get_label() == forecaster
        np.testing.assert_array_equal(csi.lines[number].get_xdata(), [10, 20, 30, 40, 50, 60])
        np.testing.assert_array_equal(csi.lines[number].get_ydata(), at["csi"].sel(threshold=1))
        np.testing.assert_array_equal(mae.lines[number].get_ydata(), at["mae"])
        np.testing.assert_array_equal(fss.lines[number].get_xdata(), SCALES)
        np.testing.assert_array_equal(
            fss.lines[number].get_ydata(), at["fss"].sel(threshold=1).isel(lead_time=2)
        )
    assert [text.get_text() for text in csi.texts] == ["1\N{THIN SPACE}500 observed pixels"]


def test_scales_are_rounded_to_whole_pixels(drawn, tmp_path):
    plot_scores(made(fss_window_pixels=[1, 1, 5], grid_spacing_km=3.75), tmp_path / "x.png")
    np.testing.assert_array_equal(drawn[0].axes[5].lines[0].get_xdata(), [3.75, 3.75, 18.75])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attrs", "title"),
    [
        ({}, "Rain rate of behel, 12 forecasts"),
        ({"simulated": 1}, "Simulated data: Rain rate of behel, 12 forecasts"),
        ({"n_cases": 1}, "Rain rate of behel, 1 forecast"),
        (
            {"first_start": "2020-06-01T18:40:00", "last_start": "2020-06-01T22:50:00"},
            "Rain rate of behel, 12 forecasts, made from 2020-06-01 18:40 to 22:50 UTC",
        ),
        (
            {"first_start": "2020-06-01T18:40:00", "last_start": "2020-06-02T00:00:00"},
            "Rain rate of behel, 12 forecasts, made from 2020-06-01 18:40 to 2020-06-02 00:00 UTC",
        ),
    ],
)
def test_title_has_source_number_of_cases_and_times(attrs, title, drawn, tmp_path):
    plot_scores(made(**attrs), tmp_path / "x.png")
    assert drawn[0].get_suptitle() == title


def test_a_long_title_stays_inside_a_narrow_picture(drawn, tmp_path):
    one = made(source="Rain rate of RAD_NL25_RAU_5min", first_start="2010-08-26T02:15:00",
               last_start="2010-08-27T03:15:00").sel(threshold=[1.0])  # fmt: skip
    plot_scores(one, tmp_path / "scores.png")
    (title,) = (text for text in drawn[0].texts if "RAD_NL25" in text.get_text())
    across = title.get_window_extent()
    assert across.x0 >= 0
    assert across.x1 <= drawn[0].bbox.x1


@pytest.mark.slow
def test_without_any_event_there_is_still_a_picture(drawn, tmp_path):
    nothing = made()
    for name in ("csi", "fss", "bias"):
        nothing[name] = nothing[name] * np.nan
    plot_scores(nothing.drop_vars("events"), tmp_path / "x.png")
    assert len(drawn[0].axes) == 2 * 2


def test_a_figure_is_written_whole_and_the_same_each_time(tmp_path):
    for name in ("a.png", "b.png"):
        figure = new_figure(2.0, 1.0)
        figure.subplots().plot([0, 1])
        save(figure, tmp_path / "new" / name, dpi=50)
    first, second = ((tmp_path / "new" / name).read_bytes() for name in ("a.png", "b.png"))
    assert first[:8] == b"\x89PNG\r\n\x1a\n"
    assert first == second


def test_an_old_file_stays_when_drawing_fails(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"older")
    figure = new_figure(1.0, 1.0)
    figure.suptitle("$\\nonsense$")
    with pytest.raises(ValueError, match="nonsense"):
        save(figure, path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_no_state_of_pyplot_is_touched():
    new_figure(1.0, 1.0)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_missing_matplotlib_is_named_with_the_extra(monkeypatch):
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
    """CIE L*a*b* of a colour with that sight."""
    from skimage.color import rgb2lab

    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = (sight @ linear).clip(0, 1)
    coded = np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)
    return np.asarray(rgb2lab(coded[None, None])[0, 0])


@pytest.mark.parametrize("kind", SIGHT)
def test_every_two_colours_can_be_distinguished(kind):
    names = (DRY, *COLOURS, EXTREME, MISSING)
    seen = [lab(colour, np.array(SIGHT[kind])) for colour in names]
    for i, one in enumerate(seen):
        for j, other in enumerate(seen[:i]):
            # 2.3 is the least difference that is noticed side by side.
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
def test_a_rate_has_the_colour_between_its_edges(rain, colour):
    scale, norm = rain_colours()
    assert to_hex(scale(norm(np.ma.masked_invalid([rain])))[0]) == colour


def test_the_legend_has_the_levels():
    _, norm = rain_colours()
    np.testing.assert_array_equal(norm.boundaries, LEVELS)
    assert len(COLOURS) == len(LEVELS) - 1


def test_methods_have_different_colours_and_markers():
    colours, marks = ({method[k] for method in METHODS} for k in (0, 1))
    assert len(colours) == len(marks) == len(METHODS)
