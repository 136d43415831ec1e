"""Networks of the moving frame as forecasters: untrained they equal S-PROG; none leaves blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import daskdl
from daskdl import models, nn
from daskdl.interop.description import describe
from daskdl.kernels.runtime.precision import computing_in
from daskdl.ops import mean
from nowcast.forecasters import Sprog
from nowcast.forecasters.trained import Trained
from nowcast.lagrangian.cascade import Cascade, arrivals
from nowcast.lagrangian.exceedance import SHIPPED, THRESHOLDS
from nowcast.model.folder import load_model
from nowcast.model.moving.features import CHANNELS, features
from nowcast.model.moving.model import MovingModel
from nowcast.model.moving.networks import Averaged, network
from nowcast.model.settings import TrainSettings
from nowcast.model.split import Split
from tests.nowcast.stores import translation

NAMES = get_args(TrainSettings.model_fields["network"].annotation)
GRID = {"spacing_km": 1.0, "step_minutes": 5.0}


def model(*networks) -> MovingModel:
    made = Averaged(networks or [network("small", 0)]).eval()
    return MovingModel(made, (5.0,), (1.0,), 60, SHIPPED, Split((), (), ()), {})


def shaken(name: str = "small", seed: int = 1):
    """A network whose last weights are not 0, as after training."""
    made = network(name, seed)
    rng = np.random.default_rng(seed)
    made.head.weight.data[...] = 0.3 * rng.standard_normal(made.head.weight.shape)
    return made


@pytest.fixture(scope="module")
def rain():
    frames = translation(3, 1, 2, size=96)
    frames[:, :9, :5] = np.nan
    return frames


@pytest.mark.slow
def test_an_untrained_network_is_sprog(rain):
    sprog = Sprog().forecast(rain, 3, members=2, **GRID)
    made = Trained(model()).forecast(rain, 3, members=2, **GRID)
    for name in ("rain", "probability", "members", "event_probability"):
        np.testing.assert_array_equal(getattr(made, name), getattr(sprog, name))


def test_a_trained_network_changes_sprog_where_it_forecasts(rain):
    sprog = Sprog().forecast(rain, 2, **GRID)
    made = Trained(model(shaken())).forecast(rain, 2, thresholds=(0.3, 1.0), **GRID)
    assert made.thresholds == (0.3, 1.0)
    assert np.array_equal(np.isnan(made.rain), np.isnan(sprog.rain))
    difference = np.abs(made.probability[1] - sprog.exceedance(1.0))
    assert np.nanmax(difference) > 0.005
    assert (made.probability[0] >= made.probability[1])[np.isfinite(made.probability[0])].all()
    assert np.nanmean(np.abs(made.rain - sprog.rain)) > 0


def test_a_quantized_network_forecasts_nearly_the_same(rain, tmp_path):
    """Its folder is a model that ``nowcast predict --model`` takes."""
    full = model(shaken())
    cascade, arrival = _arrival(rain)
    x = features(cascade, arrival, SHIPPED)[np.newaxis]
    logits = np.zeros((*x.shape[:3], len(THRESHOLDS)), np.float32)
    samples = np.concatenate([x, logits], -1)
    network = daskdl.quantize(full.network, samples, tried=0)
    assert any(type(module).__name__ == "Int8Conv2d" for _, module in network.modules())
    replace(full, network=network).save(tmp_path)
    small, whole = (Trained(m).forecast(rain, 2, **GRID) for m in (load_model(tmp_path), full))
    change = np.abs(small.probability - whole.probability)
    assert 0 < np.nanmax(change) < 0.1
    assert np.nanmean(change) < 0.005


def test_more_probable_rain_is_more_rain(rain):
    wetter = network("small", 0)
    wetter.head.bias.data[...] = 1.0
    sprog = Sprog().forecast(rain, 2, **GRID)
    made = Trained(model(wetter)).forecast(rain, 2, **GRID)
    assert np.nanmean(made.rain) > 1.1 * np.nanmean(sprog.rain)
    for level in THRESHOLDS:
        assert np.count_nonzero(made.rain >= level) >= np.count_nonzero(sprog.rain >= level)
    known = np.isfinite(sprog.rain)
    assert (made.rain >= 0.6 * sprog.rain)[known].all()
    assert (made.rain >= 0.99 * sprog.rain)[known].mean() > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_lines_of_blocks(name, rain):
    """Neighbours across any line of a grid differ as much as other neighbours do."""
    made = model(shaken(name))
    cascade, arrival = _arrival(rain)
    shift = made(cascade, arrival, SHIPPED)
    assert shift.shape == (7, 96, 96)
    inner = shift[:, 12:-12, 12:-12]
    for axis in (1, 2):
        steps = np.abs(np.diff(inner, axis=axis)).mean(axis=(0, 3 - axis))
        for period in (2, 4, 8):
            for phase in range(period):
                here, there = (
                    steps[phase::period].mean(),
                    np.delete(steps, np.arange(phase, len(steps), period)).mean(),
                )
                assert here < 1.15 * there, (axis, period, phase)


@pytest.mark.slow
def test_large_grids_are_computed_in_squares_with_the_same_result(rain, monkeypatch):
    made, (cascade, arrival) = model(shaken()), _arrival(translation(3, 1, 2, size=400))
    whole = made(cascade, arrival, SHIPPED)
    monkeypatch.setattr("nowcast.model.moving.model.SQUARE", 96)
    np.testing.assert_allclose(made(cascade, arrival, SHIPPED), whole, atol=1e-5)


def test_several_networks_give_their_mean(rain):
    one, two = shaken(seed=1), shaken(seed=2)
    cascade, arrival = _arrival(rain)
    shifts = [model(*n)(cascade, arrival, SHIPPED) for n in ((one,), (two,), (one, two))]
    np.testing.assert_allclose(shifts[2], (shifts[0] + shifts[1]) / 2, atol=1e-5)


def test_the_folder_restores_the_model(rain, tmp_path):
    made = model(shaken())
    made.save(tmp_path)
    assert "CorrectionNetwork" in describe(tmp_path)["modules"]
    again = load_model(tmp_path)
    assert "corrects</th><td>S-PROG&#x27;s probabilities, to" in again._repr_html_()
    assert isinstance(again, MovingModel)
    assert again.table == SHIPPED
    forecasts = [Trained(m).forecast(rain, 1, **GRID) for m in (made, again)]
    np.testing.assert_array_equal(forecasts[0].probability, forecasts[1].probability)


def _arrival(rain: np.ndarray):
    cascade = Cascade.of(rain, **GRID)
    return cascade, next(arrivals(cascade, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long) if n == "trajgru" else n for n in NAMES]
)
def test_networks_compute_in_float32_in_both_precisions(name):
    x = np.random.default_rng(0).standard_normal((2, 24, 24, CHANNELS + len(THRESHOLDS)))
    results = []
    for precision in ("float32", "bf16-pairs"):
        made = network(name, 1).eval()
        made.head.weight.data[...] = 0.1
        with computing_in(precision):
            y = made(x.astype(np.float32))
            mean(y * y).backward()
        results.append((y.data, made.flat_grad.copy()))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_saved_network_with_a_class_named_as_in_the_zoo_is_read(tmp_path):
    made = network("small", 0)
    nn.save(made, tmp_path / "a.safetensors")
    assert {type(part).__name__ for _, part in made.modules()} & {*models.__all__} == {"UNet"}
    kinds = [type(part) for _, part in daskdl.load(tmp_path / "a.safetensors").modules()]
    assert kinds == [type(part) for _, part in made.modules()]
