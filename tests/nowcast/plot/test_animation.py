"""The animation, and pictures with world files: images, colours, times, places and size."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray
from PIL import Image

from daskdl.errors import MissingExtraError
from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict
from nowcast.plot import animate_forecast
from nowcast.plot.animation import FRAME, LAST
from nowcast.plot.bare import write_pictures
from nowcast.plot.figure import COLOURS, DRY, LEVELS, MISSING
from tests.nowcast.plot.pictures import axes, forecast, frames, share
from tests.nowcast.plot.test_panels import uncertain
from tests.nowcast.stores import moving_rain


def images(path: Path) -> tuple[list[NDArray[np.uint8]], list[int]]:
    with Image.open(path) as animation:
        assert animation.format == "GIF"
        assert animation.info["loop"] == 0
        frames_read, durations = [], []
        for number in range(animation.n_frames):
            animation.seek(number)
            durations.append(animation.info["duration"])
            frames_read.append(np.asarray(animation.convert("RGB")))
    return frames_read, durations


@pytest.mark.slow
def test_images_of_the_input_and_then_of_each_lead_time(tmp_path):
    path = tmp_path / "a.gif"
    animate_forecast(forecast(), path, observed=frames(1, 6), before=frames(-2, 0))
    shown, durations = images(path)
    assert len(shown) == 3 + 6
    assert durations == [FRAME] * 8 + [LAST]
    assert len({image.shape for image in shown}) == 1
    assert all((one != other).any() for one, other in pairwise(shown))
    # Two maps side by side: equal for the frames of the input, and different afterwards.
    half = shown[0].shape[1] // 2
    storms = [
        [share(image[:, part], COLOURS[6]) for part in (slice(None, half), slice(half, None))]
        for image in shown
    ]
    assert storms[0][0] == pytest.approx(0.0, abs=1e-5)
    assert storms[-1][1] > 0.005
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_colours_are_exact(tmp_path):
    animate_forecast(forecast(2), tmp_path / "a.gif")
    for image in images(tmp_path / "a.gif")[0]:
        assert share(image, DRY) > 0.4
        assert share(image, MISSING) > 0.005
        assert all(share(image, colour) > 0.001 for colour in COLOURS)


@pytest.mark.slow
@pytest.mark.parametrize("of_radar", [False, True])
def test_degrees_and_kilometres_are_not_cut_off(of_radar, tmp_path):
    made, observed = uncertain(), None
    east, north = np.meshgrid(made["x"] / 70e3 + 4, made["y"] / 111e3 + 52)
    made = made.assign_coords(latitude=(("y", "x"), north), longitude=(("y", "x"), east))
    if of_radar:
        part = {"x": slice(20), "y": slice(20)}
        made.attrs["source"] = "weather radar, ODIM_H5, station X"
        made = made.assign_coords(crs=((), 0, {"grid_mapping_name": "azimuthal_equidistant"}))
        made, observed = made.isel(part), frames(1, 6).isel(part)
    animate_forecast(made, tmp_path / "a.gif", observed=observed)
    assert images(tmp_path / "a.gif")[0][0][:, 0].min() > 250  # white


@pytest.mark.slow
def test_different_data_gives_different_images(tmp_path):
    for name, made in (("a", forecast(2)), ("b", forecast(2, speed=0)), ("c", forecast(2))):
        animate_forecast(made, tmp_path / f"{name}.gif")
    a, b, c = ((tmp_path / f"{name}.gif").read_bytes() for name in "abc")
    assert a == c
    assert a != b


@pytest.mark.slow
def test_size_is_bounded(tmp_path):
    """Noise in every cell of 256 x 256 for 18 lead times stays below three megabytes."""
    rain = np.random.default_rng(0).lognormal(0.0, 2.0, (18, 256, 256)).astype(np.float32)
    from scipy.ndimage import uniform_filter

    rain = uniform_filter(rain, (0, 4, 4))
    lead = np.arange(1, 19) * np.timedelta64(300, "s").astype("timedelta64[ns]")
    made = xr.DataArray(rain, dims=("lead_time", "y", "x"), coords={"lead_time": lead, **axes(256)})
    observed = made[::-1].assign_coords(lead_time=lead)
    animate_forecast(made, tmp_path / "a.gif", observed=observed)
    assert 100_000 < (tmp_path / "a.gif").stat().st_size < 3_000_000


def test_missing_pillow_is_named_with_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskdl\[nowcast\]'"):
        animate_forecast(forecast(), tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def made(tmp_path):
    forecast = predict(forecaster("sprog"), moving_rain(), lead_minutes=30)
    forecast["rain_rate"].values[:, :3, :5] = np.nan
    forecast["rain_rate"].values[:, 5:8, 2:9] = 1.5
    write_pictures(forecast, tmp_path / "f.gif")
    return forecast, [*sorted(tmp_path.glob("*.png")), tmp_path / "f.gif"]


def test_a_pixel_has_the_colour_of_its_cell(made):
    forecast, files = made
    assert [path.name for path in files] == [
        "f_010min.png", "f_020min.png", "f_030min.png", "f.gif",
    ]  # fmt: skip
    with Image.open(files[-1]) as animation:
        assert animation.n_frames == 3
        for n, rain in enumerate(forecast["rain_rate"].values[:, ::-1]):
            animation.seek(n)
            with Image.open(files[n]) as png:
                pixels, moving = np.array(png.convert("RGBA")), np.array(animation.convert("RGBA"))
            assert (moving == pixels).all()
            assert (pixels[rain < LEVELS[0] * 0.999, 3] == 0).all()
            for colour, cells in ((MISSING, np.isnan(rain)), (COLOURS[2], rain == 1.5)):
                assert cells.sum() >= 15
                assert (pixels[cells] == [*bytes.fromhex(colour[1:]), 255]).all()


def test_gdal_finds_place_and_time(made):
    rasterio = pytest.importorskip("rasterio")
    forecast, files = made
    dy, dx = (float(forecast[axis][1] - forecast[axis][0]) for axis in "yx")
    for path in files:
        with rasterio.open(path) as file:
            assert file.xy(0, 0) == (forecast["x"].values[0], forecast["y"].values[-1])
            assert (file.transform.a, file.transform.e) == (dx, -dy)
            assert file.crs.to_dict()["proj"] == "aeqd"
            assert file.tags()["forecast_reference_time"] == "2020-06-01T03:50Z"
    with rasterio.open(files[1]) as file:
        assert file.tags()["valid_time"] == "2020-06-01T04:10Z"
