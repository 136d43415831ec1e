"""The model folder and the model as a forecaster."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import DataError
from daskdl.models import ConvLSTMForecaster
from daskdl.nn import Linear, save
from nowcast.model.folder import load_model
from nowcast.model.model import NowcastModel, RainScale
from nowcast.model.saved import FILE
from nowcast.model.split import split_by_rain

STEP = np.timedelta64(300, "s")


@pytest.fixture(scope="module")
def model() -> NowcastModel:
    time = np.datetime64("2020-02-07T13:00") + 5 * np.arange(40) * np.timedelta64(1, "m")
    network = ConvLSTMForecaster(2, 3, channels=(4,), block=4)
    network.head.bias.data += 0.5  # of an untrained one all may be dry
    split = split_by_rain("store", time, np.ones(40), (0.5, 0.2), 5)
    return NowcastModel(network, STEP, (1000.0, 1000.0), RainScale(), split, {"a": 1})


def rain(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).gamma(0.5, 2, shape).astype(np.float32)


def test_a_notebook_shows_what_it_reads_and_forecasts(model):
    html = model._repr_html_()
    for text in (
        "2 frames, one every 5 min", "3 frames, to 15 min ahead", "1 by 1 km",
        ">train<", "2020-02-07 13:00", "ConvLSTMForecaster", ">a<",
    ):  # fmt: skip
        assert text in html


def test_forecasts_any_size_in_mm_per_hour(model):
    forecast = model(rain(2, 10, 13))
    assert forecast.shape == (3, 10, 13)
    assert forecast.dtype == np.float32
    assert np.isfinite(forecast).all()
    assert (forecast >= 0).all()
    assert len(np.unique(forecast)) > 100


def test_missing_in_the_last_frame_is_missing_in_the_forecast_and_nowhere_else(model):
    frames = rain(2, 12, 12)
    frames[0, :3] = np.nan
    frames[1, :, 8:] = np.nan
    frames[1, 5, 5] = np.nan
    forecast = model(frames)
    assert np.array_equal(np.isnan(forecast), np.broadcast_to(np.isnan(frames[1]), (3, 12, 12)))


def test_nothing_observed_nothing_forecast(model):
    assert np.isnan(model(np.full((2, 8, 8), np.nan, np.float32))).all()


def test_refuses_another_number_of_frames(model):
    with pytest.raises(DataError, match=r"expected 2 frames .* trained for 2 frames in and 3 out"):
        model(rain(3, 8, 8))


def test_folder_brings_back_the_same_model(model, tmp_path):
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    frames = rain(2, 8, 8)
    assert np.array_equal(again(frames), model(frames))
    assert (again.step, again.spacing, again.scale) == (model.step, model.spacing, model.scale)
    assert again.split == model.split
    assert again.about == {"a": 1}


def test_refuses_folders_without_a_model(tmp_path):
    with pytest.raises(DataError, match="expected a model that nowcast train wrote, found no"):
        load_model(tmp_path)
    save(Linear(1, 1), tmp_path / FILE)
    with pytest.raises(DataError, match="found one without 'step_seconds'"):
        load_model(tmp_path)


def test_refuses_stores_of_another_grid_or_step(model):
    model.check_fits("rain.zarr", (1000.0, 1010.0), STEP)
    with pytest.raises(DataError, match=r"rain.zarr: .*1000 x 1000 m.*found 500 x 500 m"):
        model.check_fits("rain.zarr", (500.0, 500.0), STEP)
    with pytest.raises(DataError, match=r"frames every 5 min.*found every 10 min"):
        model.check_fits("rain.zarr", (1000.0, 1000.0), 2 * STEP)
