"""A nowcasting model's network as an ONNX file: the runtime's forecast is the model's own."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.models import ConvLSTMForecaster
from nowcast.model.inputs import RainScale
from nowcast.model.model import NowcastModel
from nowcast.model.settings import TrainSettings
from nowcast.model.split import split_by_rain

STEP = np.timedelta64(300, "s")


def test_onnxruntime_makes_the_same_forecast(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from daskdl.interop.onnx import save

    settings = TrainSettings()
    time = np.datetime64("2020-02-07T13:00") + 5 * np.arange(40) * np.timedelta64(1, "m")
    network = ConvLSTMForecaster(
        settings.n_in, 3, settings.channels, settings.kernel_size, settings.block
    )
    network.head.bias.data += 0.5  # of an untrained one all may be dry
    split = split_by_rain("store", time, np.ones(40), (0.5, 0.2), 5)
    model = NowcastModel(network, STEP, (1000.0, 1000.0), RainScale(), split)
    rain = np.random.default_rng(0).gamma(0.5, 2, (settings.n_in, 24, 32)).astype(np.float32)

    save(network, tmp_path / "nowcast.onnx", (settings.n_in, 24, 32, 1))
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(tmp_path / "nowcast.onnx", options)
    name = session.get_inputs()[0].name
    x = model.scale.to_network(rain)[np.newaxis, ..., np.newaxis]
    (found,) = session.run(None, {name: np.repeat(x, 2, 0)})
    for one in found:
        forecast = model.scale.to_rain(one[..., 0])
        np.testing.assert_allclose(forecast, model(rain), rtol=1e-4, atol=1e-4)
