"""Sums of rain: rain that moves, gaps, probabilities of members, areas, and the command."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import xarray as xr

import nowcast
from daskdl.console import run
from daskdl.errors import DataError, SettingsError
from nowcast.cli import app
from nowcast.forecasters.dataset import forecast_dataset
from nowcast.forecasters.forecast import Forecast
from nowcast.rain.grid import Grid
from nowcast.rain.store import write_dataset
from tests.nowcast.stores import START, moving_rain, rain_of, translation

GRID = Grid.around(50.0, 5.0, size=(64, 64), spacing=1000.0)
store = partial(rain_of, grid=GRID)


def members(*rates) -> xr.Dataset:
    """A forecast of three leads of ten minutes; each member has rates (lead,) everywhere."""
    fields = np.ones((len(rates), 3, 64, 64), np.float32)
    fields *= np.array(rates, np.float32)[:, :, None, None]
    observed = store(np.ones((2, 64, 64)), [0, 10])
    return forecast_dataset(observed, 1, Forecast(fields.mean(0), members=fields), "test")


def areas(folder, **geometries):
    """A GeoJSON file of named geometries, given in metres on the grid."""
    import pyproj

    to_degrees = pyproj.Transformer.from_crs(GRID.projection, "EPSG:4326", always_xy=True)

    def placed(numbers):
        if isinstance(numbers[0], list):
            return [placed(part) for part in numbers]
        return list(to_degrees.transform(*numbers))

    features = [
        {"type": "Feature", "properties": {"name": name}, "geometry":
            {"type": kind, "coordinates": placed(numbers)}}
        for name, (kind, numbers) in geometries.items()
    ]  # fmt: skip
    path = folder / "areas.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_rain_that_moves_by_eight_cells_a_frame_leaves_no_comb():
    fine = translation(121, 0, 0.4, size=64, margin=60, seed=3)
    truth = (fine[:-1] + fine[1:]).mean(0) / 2
    rain = store(fine[::20], np.arange(0, 61, 10))
    inner = (slice(8, -8), slice(8, -8))
    sums = nowcast.accumulate(rain, "1h")
    error = np.abs(sums["rain_sum"].values[0, 0] - truth)[inner].mean()
    without_motion = np.abs((fine[:-1:20] + fine[20::20]).mean(0) / 2 - truth)[inner].mean()
    assert error < 0.25 * without_motion
    assert sums["time"].values[0] == START + np.timedelta64(60, "m")


def test_a_gap_counts_as_not_observed_and_a_long_gap_makes_a_sum_missing():
    minutes = [0, 10, 20, 60, 70, 80, 90, 100, 110, 120]
    rain = store(np.full((10, 64, 64), 6.0), minutes)
    sums = nowcast.accumulate(rain, "1h", observed=0.3)
    np.testing.assert_allclose(sums["observed_share"][0, :, 9, 9], [1 / 3, 1], rtol=1e-5)
    np.testing.assert_allclose(sums["rain_sum"][0, :, 9, 9], [6, 6], rtol=1e-5)
    first, second = (
        nowcast.accumulate(rain, "60min,20min", every="20min", observed=0.5)["rain_sum"].sel(
            time=[START + np.timedelta64(m, "m") for m in (80, 120)], window=1.0
        )[:, 9, 9]
        * 1
    )
    assert np.isclose(second, 6)
    assert np.isnan(first)  # twenty minutes of sixty
    bridged = nowcast.accumulate(rain, "1h", bridge="40min")
    assert (bridged["observed_share"] > 0.99).all()


def test_probabilities_count_the_sums_of_members():
    # The second and the third member have the same rates in another order in time.
    sums = nowcast.accumulate(
        members([12, 12, 12], [0, 0, 18], [18, 0, 0]), "30min", amounts=[3, 5]
    )
    np.testing.assert_allclose(sums["rain_sum"][0, 0, 9, 9], (6 + 2.25 + 4.5) / 3, atol=0.8)
    assert sums["exceedance_probability"].dims == ("window", "amount", "time", "y", "x")
    probability = sums["exceedance_probability"][0, :, 0, 9, 9]
    np.testing.assert_allclose(probability, [2 / 3, 1 / 3], rtol=1e-6)
    with pytest.raises(DataError, match="expected a forecast with members"):
        nowcast.accumulate(moving_rain(), "1h", amounts=[5])


def test_areas_have_the_mean_of_their_cells_by_share(tmp_path):
    rate = np.broadcast_to(np.arange(64.0), (7, 64, 64))
    # From the middle of the grid: 4 cells and a half along x, which hold 32 ... 35 and half of 36.
    square = [[[0, 0], [4500, 0], [4500, 3000], [0, 3000], [0, 0]]]
    far = [[[9e5, 0], [9.1e5, 0], [9.1e5, 1e4], [9e5, 0]]]
    path = areas(
        tmp_path, square=("Polygon", square), gauge=("Point", [500, 500]), far=("Polygon", far)
    )
    sums = nowcast.accumulate(store(rate, np.arange(0, 61, 10)), "1h", areas=path)
    mean = sums["area_rain_sum"].sel(area=["square", "gauge", "far"]).values[0, 0]
    np.testing.assert_allclose(mean[:2], [(32 + 33 + 34 + 35 + 18) / 4.5, 32], rtol=1e-2)
    assert np.isnan(mean[2])
    assert sums["area_observed_share"].values[0, 0, 2] == 0


@pytest.mark.parametrize("ending", ["nc", "zarr"])
def test_the_command_writes_sums_and_a_table_of_areas(tmp_path, capsys, ending):
    write_dataset(members([12, 12, 12], [0, 0, 18]), tmp_path / "forecast.nc")
    path = areas(tmp_path, gauge=("Point", [500, 500]))
    out = tmp_path / f"sums.{ending}"
    command = ["accumulate", str(tmp_path / "forecast.nc"), "--out", str(out), "--areas", str(path)]
    assert run(app, [*command, "--over", "10min,30min", "--amounts", "5"]) == 0
    assert "sums at 3 times" in capsys.readouterr().err
    with xr.open_dataset(out, engine="h5netcdf" if ending == "nc" else "zarr") as written:
        assert dict(written.sizes) == {
            "window": 2, "time": 3, "amount": 1, "area": 1, "y": 64, "x": 64,
        }  # fmt: skip
        assert written["area"].values.tolist() == ["gauge"]
    head, *lines = out.with_suffix(".csv").read_text().splitlines()
    assert head == "area,window,from,to,rain_mm,observed_share,probability_5mm"
    assert lines[0].startswith("gauge,10min,2020-06-01T00:10:00Z,2020-06-01T00:20:00Z,1.")
    assert lines[-1].endswith(",1.000,0.500")
    assert lines[1].endswith(",,0.333,")  # ten minutes of thirty


def test_errors_say_what_to_do(tmp_path, capsys):
    with pytest.raises(DataError, match=r"expected frames over at least 90% of 24h, found 3.8"):
        nowcast.accumulate(moving_rain(), "1h,24h")
    for settings, words in (
        ({"over": "soon"}, "over: expected a time of a minute or more such as 1h, found 'soon'"),
        ({"over": "1h", "every": "25min"}, "every: expected a divisor of 1h, found 25min"),
        ({"over": "1h", "observed": 0}, "observed: expected a share"),
        ({"over": "1h", "bridge": "nan"}, "bridge: expected a time of a minute or more"),
    ):
        with pytest.raises(SettingsError, match=words):
            nowcast.accumulate(moving_rain(), **settings)
    for text, words in (
        ("{}", "expected GeoJSON"),
        ('{"type": "Feature", "geometry": {"type": "Point", "coordinates": [5, 500]}}', "area 1"),
        (
            '{"type": "Feature", "geometry": {"type": "Point", "coordinates": [50, 5]}}',
            "found none",
        ),
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(DataError, match=words):
            nowcast.accumulate(moving_rain(), "1h", areas=tmp_path / "bad.json")
    write_dataset(moving_rain(), tmp_path / "rain.zarr")
    rain = str(tmp_path / "rain.zarr")
    assert run(app, ["accumulate", rain, "--out", rain]) == 2
    assert "expected a new name or older sums" in capsys.readouterr().err
