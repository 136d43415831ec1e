"""Samples of the moving frame: their content, which is the same however windows are cut."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.optim import Adam
from daskdl.train import Trainer
from nowcast.lagrangian.cascade import Cascade, arrivals
from nowcast.lagrangian.exceedance import SHIPPED, THRESHOLDS
from nowcast.model.moving.features import CHANNELS, MAPS, features
from nowcast.model.moving.losses import ExceedanceLoss
from nowcast.model.moving.networks import network
from nowcast.model.moving.samples import Draw, Mirrors, MovingRecipe
from nowcast.rain.windows import windows
from tests.nowcast.model.test_train import write_store
from tests.nowcast.stores import translation


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return _recipe(tmp_path_factory.mktemp("rain"), augment=False)


def _recipe(folder: Path, augment: bool) -> MovingRecipe:
    frames = translation(10, 1, 2, size=64)
    frames[:, :4] = np.nan
    store = write_store(folder / "rain.zarr", frames)
    cut = windows(store, n_in=3, n_out=4, tile=(64, 64), wet_fraction=0)
    return MovingRecipe(cut.recipes[0], 1.0, 10.0, Draw(4, 24, augment, 0), SHIPPED)


@pytest.mark.slow
def test_inputs_logits_and_reached_thresholds(recipe):
    assert len(recipe) == 4 * 4
    arrays = recipe.load().arrays
    assert arrays["x"].shape == (16, 24, 24, CHANNELS + len(THRESHOLDS))
    assert np.isfinite(arrays["x"]).all()
    reached = arrays["y"]
    assert set(np.unique(reached)) <= set(range(-1, len(THRESHOLDS) + 1))
    assert 0.2 < (reached > 0).mean() < 0.9
    # Lead times are spread: two of each half.
    leads = 30 * 2.0 ** arrays["x"][:, 0, 0, MAPS].astype(float)
    assert sorted(np.round(leads.reshape(4, 4)[0]).tolist()) == [10, 20, 30, 40]
    # Rain that only moves is forecast well: the logits predict the reached thresholds.
    chance = 1 / (1 + np.exp(-arrays["x"][..., CHANNELS:].astype(float)))
    wet = chance[..., 2][reached >= 3].mean(), chance[..., 2][(reached >= 0) & (reached < 3)].mean()
    assert wet[0] > wet[1] + 0.4


@pytest.mark.slow
def test_a_part_holds_the_same_samples_and_a_recipe_pickles(recipe):
    whole = recipe.load().arrays
    again = pickle.loads(pickle.dumps(recipe)).load().arrays
    half = MovingRecipe(
        recipe.windows.part(2, 4), recipe.spacing_km, recipe.step_minutes, recipe.draw, SHIPPED
    ).load()
    for name in ("x", "y"):
        assert np.array_equal(whole[name], again[name])
        assert np.array_equal(whole[name][8:], half.arrays[name])


@pytest.mark.slow
def test_augmented_samples_differ(recipe, tmp_path):
    original, augmented = recipe.load().arrays, _recipe(tmp_path, augment=True).load().arrays
    assert np.isfinite(augmented["x"]).all()
    assert not np.array_equal(original["y"], augmented["y"])


def test_frames_are_relative_to_the_rain_of_the_last_one():
    """Twice as much rain is the same input; 3 dB more would be half a unit."""
    frames = translation(3, 1, 2, size=64)
    rain = np.where(frames > 0.5, frames, 0).astype(np.float32)
    made = []
    for factor in (1, 2):
        cascade = Cascade.of(rain * np.float32(factor), spacing_km=1.0, step_minutes=5)
        here = next(arrivals(cascade, 1))
        made.append(features(cascade, here, SHIPPED)[..., 2])
    assert np.median(np.abs(made[1] - made[0])[made[0] > -0.5]) < 0.05


def test_mirrors_change_inputs_and_truth_alike(recipe):
    batch = {name: array[:6] for name, array in recipe.load().arrays.items()}
    batch["x"][..., 0] = batch["y"]
    made = Mirrors()(batch, np.random.default_rng(0))
    assert np.array_equal(made["x"][..., 0], made["y"])
    assert not np.array_equal(made["y"], batch["y"])
    assert np.array_equal(np.sort(made["y"], axis=None), np.sort(batch["y"], axis=None))


@pytest.mark.parametrize("kind", ["crps", "balanced", "sharp"])
def test_losses_are_least_for_the_truth_and_ignore_missing_pixels(kind):
    rng = np.random.default_rng(0)
    target = rng.integers(-1, 8, (2, 8, 8)).astype(np.int8)
    truth = np.where(target[..., None] > np.arange(7), 9.0, -9.0).astype(np.float32)
    loss = ExceedanceLoss(kind)
    right = float(loss(truth, target).data)
    assert right < 1e-3
    assert float(loss(truth * 0, target).data) > right + 0.1
    missing = np.where((target < 0)[..., None], -truth, truth)
    assert float(loss(missing, target).data) == pytest.approx(right, abs=1e-7)


@pytest.mark.slow
def test_training_lowers_the_loss_of_a_network(recipe):
    made, loss, samples = network("small", 0), ExceedanceLoss(), SampleSet([recipe])
    before = made.evaluate(samples, loss=loss)["loss"]
    Trainer(made, loss, Adam(2e-3)).fit(samples, iterations=30, batch_size=8, progress=False)
    assert made.evaluate(samples, loss=loss)["loss"] < 0.95 * before


def test_places_do_not_depend_on_the_future(recipe):
    window = recipe.windows.load().take(np.array([0]))
    past, observed = window["x"][0, ..., 0], window["y"][0, ..., 0]
    drawn = []
    for future in (observed, observed[:, ::-1, ::-1] * np.float32(3)):
        x = np.zeros((4, 24, 24, CHANNELS + len(THRESHOLDS)), np.float16)
        y = np.full((4, 24, 24), -1, np.int8)
        known = np.where(np.isfinite(observed), np.nan_to_num(future), np.nan)
        recipe._fill(past, known, np.random.default_rng(5), x, y)
        drawn.append((x, y))
    assert not np.array_equal(drawn[0][1], drawn[1][1])
    np.testing.assert_array_equal(drawn[0][0], drawn[1][0])
