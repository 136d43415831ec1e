"""Pictures with world files: cells in their place, as GDAL reads them; colours of the scale."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from daskdl.console import run
from nowcast.cli import app
from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict
from nowcast.plot.bare import write_pictures
from nowcast.plot.figure import COLOURS, LEVELS, MISSING
from nowcast.rain.store import write_zarr
from tests.nowcast.stores import moving_rain


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


def test_predict_writes_them(tmp_path):
    write_zarr(moving_rain(), tmp_path / "rain.zarr")
    out = tmp_path / "new" / "f.gif"
    for _ in range(2):  # over the first
        assert run(app, ["predict", str(tmp_path / "rain.zarr"), "--out", str(out)]) == 0
    names = {path.name for path in out.parent.iterdir()}
    assert len(names) == 3 * 7
    assert {"f.gif", "f.gfw", "f.gif.aux.xml", "f_060min.pgw"} <= names
