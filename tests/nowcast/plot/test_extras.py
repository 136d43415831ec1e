"""Probabilities and members as rows of a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from daskdl.errors import SettingsError
from nowcast.plot import animate_forecast, plot_forecast
from nowcast.plot import forecast as module
from nowcast.plot.figure import OUTLINE, PROBABILITIES
from nowcast.plot.panels import OBSERVED, Panels, _extra_rows
from tests.nowcast.plot.pictures import field, forecast, frames, pixels, share


def uncertain(members: int = 0) -> xr.Dataset:
    """A forecast with the probabilities of 1 and 5 mm/h, and so many members."""
    made = forecast()
    rain = made["rain_rate"]
    p = np.stack([np.clip(rain / 30, 0, 1), np.clip(rain / 60, 0, 1)]).astype(np.float32)
    made["exceedance_probability"] = (("threshold", *rain.dims), p)
    made = made.assign_coords(threshold=[1.0, 5.0])
    if members:
        scale = np.arange(members, dtype=np.float32)[:, None, None, None]
        made["rain_rate_members"] = (("realization", *rain.dims), rain.values * scale)
    return made


def test_probability_of_one_is_shown_by_default_and_others_when_asked() -> None:
    rows, probabilities = _extra_rows("sprog", uncertain(3), None, 2)
    assert list(rows) == ["sprog\n1 mm/h or more", "sprog\nmember 1", "sprog\nmember 2"]
    assert probabilities == {"sprog\n1 mm/h or more": 1.0}
    _, probabilities = _extra_rows("sprog", uncertain(), (5.0,), 2)
    assert list(probabilities.values()) == [5.0]
    assert _extra_rows("plain", forecast(), None, 2) == ({}, {})


def test_fraction_of_members_is_a_probability_too() -> None:
    made = uncertain(3).drop_vars("exceedance_probability")
    rows, _ = _extra_rows("steps", made, (1.0,), 0)
    values = rows["steps\n1 mm/h or more"].values
    # Members are 0, 1 and 2 times the field.
    expected = ((made["rain_rate"] >= 1).values * 1.0 + (2 * made["rain_rate"] >= 1).values) / 3
    missing = np.isnan(made["rain_rate"].values)
    np.testing.assert_allclose(values[~missing], expected[~missing], rtol=1e-6)
    assert np.isnan(values[missing]).all()


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match=r"one of the forecast's, 1, 5 mm/h, found 2"):
        Panels.of(uncertain(), thresholds=(2.0,))
    with pytest.raises(SettingsError, match="probabilities or members, found none for 1 mm/h"):
        Panels.of(forecast(), thresholds=(1.0,))


def test_rows_of_several_forecasts_stand_beside_the_observation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(module, "save", lambda figure, path: figures.append(figure))
    made = {"plain": forecast(), "sprog": uncertain(2)}
    plot_forecast(made, tmp_path / "x.png", observed=frames(1, 6), leads=(10, 60), members=1)
    (figure,) = figures
    panels = Panels.of(made, frames(1, 6), members=1)
    assert list(panels.rows) == [
        OBSERVED, "plain", "sprog", "sprog\n1 mm/h or more", "sprog\nmember 1",
    ]  # fmt: skip
    # Two columns of five rows, and a legend for rain and one for probability.
    assert len(figure.axes) == 2 * 5 + 2
    labels = {axes.get_ylabel() for axes in figure.axes[10:]}
    assert any("probability" in label for label in labels)
    outlined = [bool(axes.collections) for axes in figure.axes[:10]]
    assert outlined == [row == 3 for row in range(5) for _ in range(2)]


@pytest.mark.slow
def test_picture_and_animation_show_the_probabilities(tmp_path: Path) -> None:
    plot_forecast(uncertain(), tmp_path / "p.png", leads=(10,))
    plain = tmp_path / "plain.png"
    plot_forecast(forecast(), plain, leads=(10,))
    for colour in PROBABILITIES[3:6]:
        assert share(pixels(tmp_path / "p.png"), colour) > share(pixels(plain), colour) + 0.001
    animate_forecast(uncertain(), tmp_path / "p.gif", observed=frames(1, 6), before=frames(-1, 0))
    from PIL import Image

    with Image.open(tmp_path / "p.gif") as animation:
        assert animation.n_frames == 8
        animation.seek(5)
        image = np.asarray(animation.convert("RGB"))
    assert share(image, PROBABILITIES[4]) > 0.001
    assert share(image, OUTLINE) > 0.0005


def test_no_event_has_no_outline() -> None:
    from nowcast.plot.figure import new_figure
    from nowcast.plot.rain import draw_outline

    axes = new_figure(2, 2).subplots()
    x = np.arange(40) * 1000.0
    assert draw_outline(axes, np.zeros((40, 40), bool), x, x) == []
    assert draw_outline(axes, field() >= 1, x, x)
