"""Tests of the picture of scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from nowcast.plot import plot_scores, scores
from nowcast.plot.figure import METHODS
from tests.nowcast.plot.pictures import pixels, share

FORECASTERS, LEADS, THRESHOLDS, SCALES = (
    ("model", "persistence"),
    6,
    (0.1, 1.0, 5.0, 90.0),
    (1.0, 5, 20),
)


def made(gain: float = 0.1, **attrs: object) -> xr.Dataset:
    """Scores that fall with the lead time; of the model by ``gain`` better."""
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
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures in place of files."""
    figures: list[Figure] = []
    monkeypatch.setattr(scores, "save", lambda figure, path: figures.append(figure))
    return figures


@pytest.mark.slow
def test_a_picture_is_written_that_shows_the_scores(tmp_path: Path) -> None:
    plot_scores(made().isel(threshold=[1, 3]), tmp_path / "a.png")
    plot_scores(made(0.15).isel(threshold=[1, 3]), tmp_path / "b.png")
    one, other = pixels(tmp_path / "a.png"), pixels(tmp_path / "b.png")
    assert one.shape == other.shape
    assert (one != other).any(axis=-1).mean() > 0.001
    for colour, _ in METHODS[:2]:
        assert share(one, colour) > 0.001
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]


def test_lines_are_the_scores(drawn: list[Figure], tmp_path: Path) -> None:
    plot_scores(made(), tmp_path / "x.png")
    (figure,) = drawn
    # Three thresholds had events; a column for each, and one for MAE and bias.
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


def test_scales_are_those_of_whole_pixels(drawn: list[Figure], tmp_path: Path) -> None:
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
def test_title_has_source_number_of_cases_and_times(
    attrs: dict[str, object], title: str, drawn: list[Figure], tmp_path: Path
) -> None:
    plot_scores(made(**attrs), tmp_path / "x.png")
    assert drawn[0].get_suptitle() == title


def test_a_long_title_stays_inside_of_a_narrow_picture(drawn: list[Figure], tmp_path: Path) -> None:
    one = made(source="Rain rate of RAD_NL25_RAU_5min", first_start="2010-08-26T02:15:00",
               last_start="2010-08-27T03:15:00").sel(threshold=[1.0])  # fmt: skip
    plot_scores(one, tmp_path / "scores.png")
    (title,) = (text for text in drawn[0].texts if "RAD_NL25" in text.get_text())
    across = title.get_window_extent()
    assert across.x0 >= 0
    assert across.x1 <= drawn[0].bbox.x1


@pytest.mark.slow
def test_without_any_event_there_is_still_a_picture(drawn: list[Figure], tmp_path: Path) -> None:
    nothing = made()
    for name in ("csi", "fss", "bias"):
        nothing[name] = nothing[name] * np.nan
    plot_scores(nothing.drop_vars("events"), tmp_path / "x.png")
    assert len(drawn[0].axes) == 2 * 2
