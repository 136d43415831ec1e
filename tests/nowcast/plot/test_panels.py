"""Panels of forecasts: rows at common times, cropped, with probabilities."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from daskdl.errors import DataError, SettingsError
from nowcast.plot import animate_forecast, plot_forecast
from nowcast.plot import forecast as module
from nowcast.plot.figure import OUTLINE, PROBABILITIES, new_figure
from nowcast.plot.panels import OBSERVED, Panels, _extra_rows, edges
from nowcast.plot.rain import CellShape, draw_cells
from tests.nowcast.plot.pictures import field, forecast, frames, pixels, share


def test_rows_and_times():
    panels = Panels.of({"one": forecast(), "two": forecast(peak=5)["rain_rate"]}, frames(1, 6))
    assert list(panels.rows) == ["observed", "one", "two"]
    assert panels.minutes.tolist() == [10, 20, 30, 40, 50, 60]
    assert panels.reference == datetime(2021, 7, 14, 21, 50)
    assert panels.title == "Rain forecast from 2021-07-14 21:50 UTC"
    assert panels.when(20) == "22:10 UTC"
    assert panels.when(140) == "00:10 UTC"
    assert panels.aspect == 1.0
    np.testing.assert_array_equal(panels.rows["one"], forecast()["rain_rate"])


def test_observed_frames_get_the_times_of_the_forecast():
    panels = Panels.of(forecast(), frames(-3, 4))
    np.testing.assert_array_equal(panels.rows["observed"][:4], frames(1, 4).values)
    assert np.isnan(panels.rows["observed"][4:]).all()
    by_lead = frames(1, 6).rename(time="lead_time").assign_coords(lead_time=forecast()["lead_time"])
    np.testing.assert_array_equal(
        Panels.of(forecast(), by_lead[::2]).rows["observed"][2], frames(3, 3).values[0]
    )


def test_rims_that_are_missing_everywhere_are_cut_off():
    made, seen = forecast(), frames(1, 6)
    made["rain_rate"][:, :10] = np.nan
    made["rain_rate"][:, :, -5:] = np.nan
    panels = Panels.of(made)
    assert panels.rows["forecast"].shape == (6, 30, 35)
    assert panels.y.tolist() == made["y"][10:].values.tolist()
    assert panels.x.tolist() == made["x"][:-5].values.tolist()
    assert panels.aspect == pytest.approx(30 / 35)
    assert Panels.of(made, seen).rows["observed"].shape == (6, 40, 40)
    made["rain_rate"][:] = np.nan
    assert Panels.of(made).rows["forecast"].shape == (6, 40, 40)


def test_zoom_shows_the_square_with_the_most_rain():
    made = forecast()
    made["rain_rate"][:] = 0
    made["rain_rate"][3, 20:30, 5:9] = 2
    made["rain_rate"][:, 0, 0] = 3
    made["rain_rate"][1, :, 35:] = np.nan
    panels = Panels.of(made, frames(1, 6) * 0, before=frames(-2, 0))
    cell = float(made["x"][1] - made["x"][0]) / 1000
    near = panels.zoomed(10 * cell)
    assert near.rows["forecast"].shape == near.rows["observed"].shape == (6, 10, 10)
    assert near.before.shape == (3, 10, 10)
    np.testing.assert_array_equal(near.y, made["y"][20:30])
    np.testing.assert_array_equal(near.rows["forecast"][3].sum(axis=1), np.full(10, 8.0))
    assert near.aspect == 1.0
    for large in (1000 * cell, np.inf):
        assert panels.zoomed(large).rows["forecast"].shape == (6, 40, 40)
    with pytest.raises(SettingsError, match=r"--zoom: expected the side of a square in km, found"):
        panels.zoomed(0)
    with pytest.raises(SettingsError, match="found nan"):
        panels.zoomed(np.nan)


def test_frames_before_have_times_up_to_the_start():
    panels = Panels.of(forecast(), before=frames(-2, 0))
    assert panels.minutes_before.tolist() == [-20, -10, 0]
    np.testing.assert_array_equal(panels.before, frames(-2, 0))
    untimed = Panels.of(forecast(), before=frames(-2, 0).drop_vars("time"))
    assert untimed.minutes_before.tolist() == [-20, -10, 0]
    assert Panels.of(forecast()).before.shape == (0, 40, 40)


def test_another_grid_or_lead_is_refused():
    with pytest.raises(DataError, match=r"observed .* shape \(6, 40, 40\), found .*\(6, 39, 40\)"):
        Panels.of(forecast(), frames(1, 6)[:, 1:])
    with pytest.raises(DataError, match=r"expected two .* found .* shape \(4, 40, 40\)"):
        Panels.of({"one": forecast(), "two": forecast(leads=4)})
    with pytest.raises(DataError, match=r"before .*\(40, 40\), found .*\(3, 40, 30\)"):
        Panels.of(forecast(), before=frames(-2, 0)[..., :30])
    with pytest.raises(DataError, match="found none"):
        Panels.of({})


@pytest.mark.parametrize("simulated", [1, 0])
def test_simulated_data_is_named(simulated):
    panels = Panels.of({"a": forecast(), "b": forecast(simulated=simulated)})
    assert panels.simulated is bool(simulated)
    assert ("Simulated data" in panels.title) is bool(simulated)


def test_edges_of_cells():
    assert edges(np.array([1000.0, 3000.0, 5000.0])) == (0.0, 6.0)


def test_cells_outside_a_map_do_not_change_its_limits():
    left, right = new_figure(4, 2).subplots(1, 2, sharex=True, sharey=True)
    ring = np.array([[5.0, 5.0], [30.0, 5.0], [5.0, 30.0]])
    left.imshow(np.zeros((10, 10)), extent=(0, 10, 0, 10))
    draw_cells(left, [CellShape(np.datetime64("2020-06-01"), (ring,), ring[:2])])
    right.imshow(np.zeros((10, 10)), extent=(0, 10, 0, 10))
    right.contour([0, 10], [0, 10], np.eye(2))
    assert left.get_xlim() == left.get_ylim() == (0, 10)
    draw_cells(left, [])


def uncertain(members: int = 0) -> xr.Dataset:
    """A forecast with probabilities of 1 and 5 mm/h, and a number of members."""
    made = forecast()
    rain = made["rain_rate"]
    p = np.stack([np.clip(rain / 30, 0, 1), np.clip(rain / 60, 0, 1)]).astype(np.float32)
    made["exceedance_probability"] = (("threshold", *rain.dims), p)
    made = made.assign_coords(threshold=[1.0, 5.0])
    if members:
        scale = np.arange(members, dtype=np.float32)[:, None, None, None]
        made["rain_rate_members"] = (("realization", *rain.dims), rain.values * scale)
    return made


def test_probability_of_one_is_shown_by_default_and_others_when_asked():
    rows, probabilities = _extra_rows("sprog", uncertain(3), None, 2)
    assert list(rows) == ["sprog\n1 mm/h or more", "sprog\nmember 1", "sprog\nmember 2"]
    assert probabilities == {"sprog\n1 mm/h or more": 1.0}
    _, probabilities = _extra_rows("sprog", uncertain(), (5.0,), 2)
    assert list(probabilities.values()) == [5.0]
    assert _extra_rows("plain", forecast(), None, 2) == ({}, {})


def test_frames_before_a_row_of_probabilities_are_the_event():
    before = frames(-2, 0)
    before[2, :2] = [[0.5], [1.0]]
    before[2, 2] = np.nan
    panels = Panels.of(uncertain(), before=before)
    event = panels.input_of("forecast\n1 mm/h or more", 2)
    np.testing.assert_array_equal(event[:3, 0], [0, 1, np.nan])
    np.testing.assert_array_equal(panels.input_of("forecast", 2), before[2])


def test_fraction_of_members_is_a_probability_too():
    made = uncertain(3).drop_vars("exceedance_probability")
    rows, _ = _extra_rows("steps", made, (1.0,), 0)
    values = rows["steps\n1 mm/h or more"].values
    # Members are 0, 1 and 2 times the field.
    expected = ((made["rain_rate"] >= 1).values * 1.0 + (2 * made["rain_rate"] >= 1).values) / 3
    missing = np.isnan(made["rain_rate"].values)
    np.testing.assert_allclose(values[~missing], expected[~missing], rtol=1e-6)
    assert np.isnan(values[missing]).all()


def test_thresholds_that_are_missing_are_named():
    with pytest.raises(SettingsError, match=r"one of the forecast's, 1, 5 mm/h, found 2"):
        Panels.of(uncertain(), thresholds=(2.0,))
    with pytest.raises(SettingsError, match="probabilities or members, found none for 1 mm/h"):
        Panels.of(forecast(), thresholds=(1.0,))


def test_rows_of_several_forecasts_follow_the_observation(monkeypatch, tmp_path):
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
def test_picture_and_animation_show_the_probabilities(tmp_path):
    plot_forecast(uncertain(), tmp_path / "p.png", leads=(10,))
    without = tmp_path / "plain.png"
    plot_forecast(forecast(), without, leads=(10,))
    for colour in PROBABILITIES[3:6]:
        assert share(pixels(tmp_path / "p.png"), colour) > share(pixels(without), colour) + 0.001
    animate_forecast(uncertain(), tmp_path / "p.gif", observed=frames(1, 6), before=frames(-1, 0))
    from PIL import Image

    with Image.open(tmp_path / "p.gif") as animation:
        assert animation.n_frames == 8
        animation.seek(5)
        image = np.asarray(animation.convert("RGB"))
    assert share(image, PROBABILITIES[4]) > 0.001
    assert share(image, OUTLINE) > 0.0005


def test_no_event_has_no_outline():
    from nowcast.plot.figure import new_figure
    from nowcast.plot.rain import draw_outline

    axes = new_figure(2, 2).subplots()
    x = np.arange(40) * 1000.0
    assert draw_outline(axes, np.zeros((40, 40), bool), x, x) == []
    assert draw_outline(axes, field() >= 1, x, x)
