"""The model as a forecaster: its folder, settings, inputs, steps and ONNX file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError, SettingsError
from daskdl.models import ConvLSTMForecaster
from daskdl.nn import Linear, save
from nowcast.lagrangian.exceedance import SHIPPED
from nowcast.model.fixed import Symmetries
from nowcast.model.folder import load_model, step_for
from nowcast.model.model import FILE, NowcastModel, RainScale
from nowcast.model.moving.model import MovingModel
from nowcast.model.moving.networks import Averaged, network
from nowcast.model.settings import TrainSettings, parse
from nowcast.model.split import Split, split_by_rain
from tests.nowcast.stores import small_model

STEP = np.timedelta64(300, "s")


@pytest.fixture(scope="module")
def model():
    time = np.datetime64("2020-02-07T13:00") + 5 * np.arange(40) * np.timedelta64(1, "m")
    network = ConvLSTMForecaster(2, 3, channels=(4,), block=4)
    network.head.bias.data += 0.5  # else an untrained network may forecast none
    split = split_by_rain("store", time, np.ones(40), (0.5, 0.2), 5)
    return NowcastModel(network, STEP, (1000.0, 1000.0), RainScale(), split, {"a": 1})


def rain(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).gamma(0.5, 2, shape).astype(np.float32)


def test_a_notebook_shows_the_inputs_and_the_forecasts_of_a_model(model):
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


def test_only_cells_missing_in_the_last_frame_are_missing_in_the_forecast(model):
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


def ways(window: np.ndarray) -> list[bytes]:
    """The symmetries of a window (T, H, W), as bytes."""
    result = []
    for t in (1, -1):
        for y in (1, -1):
            for x in (1, -1):
                turned = window[::t, ::y, ::x]
                result.append(turned.tobytes())
                if turned.shape[1] == turned.shape[2]:
                    result.append(turned.swapaxes(1, 2).tobytes())
    return result


@pytest.mark.parametrize(("size", "count"), [((3, 3), 16), ((3, 4), 8)])
def test_every_window_becomes_one_of_its_symmetries_and_all_occur(size, count):
    window = np.arange(5 * size[0] * size[1], dtype=np.float32).reshape(5, *size)
    frames = np.broadcast_to(window[None, ..., None], (400, *window.shape, 1))
    made = Symmetries()({"x": frames[:, :2], "y": frames[:, 2:]}, np.random.default_rng(0))
    assert made["x"].shape == (400, 2, *size, 1)
    assert made["y"].shape == (400, 3, *size, 1)
    windows = {np.concatenate([x, y]).tobytes() for x, y in zip(made["x"], made["y"], strict=True)}
    assert windows == set(ways(window))
    assert len(windows) == count


def test_the_generator_alone_decides_and_nothing_is_changed_in_place():
    rng = np.random.default_rng(1)
    batch = {"x": rng.random((8, 2, 4, 4, 1)), "y": rng.random((8, 1, 4, 4, 1))}
    before = {name: array.copy() for name, array in batch.items()}
    first, second = (Symmetries()(batch, np.random.default_rng(5)) for _ in range(2))
    for name in batch:
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_array_equal(batch[name], before[name])
    other = Symmetries()(batch, np.random.default_rng(6))
    assert (other["x"] != first["x"]).any()


rates = st.floats(0, 150, width=32)


@given(rates)
def test_the_scale_can_be_inverted(rate):
    scale = RainScale()
    again = scale.to_rain(scale.to_network(np.array([rate], np.float32)))
    np.testing.assert_allclose(again, [rate], rtol=2e-5, atol=1e-6)


@given(rates, rates)
def test_more_rain_is_more(a, b):
    values = RainScale().to_network(np.array(sorted((a, b)), np.float32))
    assert values[0] <= values[1]


def test_dry_is_zero_full_is_one_missing_stays():
    values = RainScale(0.1, 50).to_network(np.array([0, 50, np.nan, -3], np.float32))
    np.testing.assert_allclose(values, [0, 1, np.nan, 0], rtol=1e-6)


def test_rain_of_a_network_has_a_lower_and_an_upper_bound():
    rain = RainScale(0.1, 50).to_rain(np.array([-3, 40], np.float32))
    assert rain[0] == 0
    np.testing.assert_allclose(rain[1], 200, rtol=1e-4)
    assert rain.dtype == np.float32


def test_onnxruntime_makes_the_same_forecast(model, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from daskdl.interop.onnx import save

    frames = rain(2, 24, 32)
    save(model.network, tmp_path / "nowcast.onnx", (2, 24, 32, 1))
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(tmp_path / "nowcast.onnx", options)
    name = session.get_inputs()[0].name
    x = model.scale.to_network(frames)[np.newaxis, ..., np.newaxis]
    (result,) = session.run(None, {name: np.repeat(x, 2, 0)})
    for one in result:
        forecast = model.scale.to_rain(one[..., 0])
        np.testing.assert_allclose(forecast, model(frames), rtol=1e-4, atol=1e-4)


def test_options_win_over_assignments_and_these_over_the_file(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("epochs: 5\nn_in: 4\ntile: 64\n")
    settings = parse(file, ["n_in=3", "channels=[8, 8]"], epochs=2.0, lead_minutes=None)
    assert (settings.epochs, settings.n_in, settings.tile) == (2, 3, 64)
    assert settings.channels == (8, 8)
    assert settings.lead_minutes == TrainSettings().lead_minutes


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("epocs=3", r"setting epocs: Extra inputs are not permitted.*settings: frame, "),
        ("epochs=-1", r"setting epochs: .*greater than 0, found -1"),
        ("epochs", r"--set: expected NAME=VALUE, .* found 'epochs'"),
        ("epochs=[8", r"--set: expected NAME=VALUE, .* found 'epochs=\[8'"),
    ],
)
def test_wrong_settings_are_named(assignment, sentence):
    with pytest.raises(SettingsError, match=sentence):
        parse(None, [assignment])


def test_a_file_that_is_no_settings_is_named(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("just words")
    with pytest.raises(SettingsError, match=r"settings.yaml: expected lines .*'just words'"):
        parse(file, [])
    with pytest.raises(SettingsError, match=r"missing.yaml: expected settings in YAML"):
        parse(tmp_path / "missing.yaml", [])


def minutes(count: float) -> np.timedelta64:
    return np.timedelta64(round(60 * count), "s")


def moving(*steps: float) -> MovingModel:
    made = Averaged([network("small", 0)])
    return MovingModel(made, steps, (1.0,), 60, SHIPPED, Split((), (), ()), {})


@pytest.mark.parametrize(
    ("steps", "have", "used", "words"),
    [
        ((5, 10), 5, 5, ""),
        ((5, 10), 7.5, 7.5, ""),
        ((10,), 5, 10, "one in 2 is used"),
        ((10,), 4, 12, "one in 3 is used"),
        ((5,), 15, 15, "it knows less of these"),
    ],
)
def test_networks_of_the_moving_frame_take_any_step(steps, have, used, words):
    step, message = step_for(moving(*steps), minutes(have), "a.zarr")
    assert step == minutes(used)
    assert words in message
    assert bool(words) == bool(message)


def test_networks_of_the_fixed_frame_take_only_their_step():
    model = small_model()  # every ten minutes
    assert step_for(model, minutes(10), "a.zarr") == (minutes(10), "")
    assert step_for(model, minutes(5), "a.zarr")[0] == minutes(10)
    for have in (4, 20):
        with pytest.raises(DataError, match=f"found every {have} min; train one on such frames"):
            step_for(model, minutes(have), "a.zarr")
