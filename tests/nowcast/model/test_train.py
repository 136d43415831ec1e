"""Training on a rain store: the folder it writes, the skill it reaches, stores it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from daskdl.cluster import connect
from daskdl.errors import DataError, SettingsError
from nowcast.model.fixed import ToNetwork
from nowcast.model.folder import load_model
from nowcast.model.settings import TrainSettings
from nowcast.model.train import train
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.store import write_zarr
from tests.nowcast.stores import translation

TINY = TrainSettings(
    frame="fixed",
    n_in=2, lead_minutes=20, channels=(8,), tile=32, tile_stride=16, epochs=6, rate=1e-2,
    fractions=(0.6, 0.2), wet_fraction=0,
)  # fmt: skip


TINY_MOVING = TrainSettings(starts=4, draws=2, cells=16, lead_minutes=20, fractions=(0.6, 0.2))


def write_store(path: Path, frames: np.ndarray) -> Path:
    """Write frames every ten minutes."""
    minutes = 10 * np.arange(len(frames))
    time = np.datetime64("2020-06-01T00:00") + minutes * np.timedelta64(1, "m")
    grid = Grid.around(50.0, 5.0, size=frames.shape[1:], spacing=1000.0)
    described = {"title": "moving patches", "source": "test"}
    write_zarr(rain_dataset(grid, time, frames, attributes={}, global_attributes=described), path)
    return path


@pytest.fixture(scope="module")
def moving():
    return translation(40, 0, 3, size=48)


@pytest.fixture(scope="module")
def trained(moving, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    store = write_store(folder / "rain.zarr", moving)
    return folder, train(store, folder / "model", TINY, progress=False)


def test_the_folder_holds_the_model_and_its_history(trained):
    folder, model = trained
    again = load_model(folder / "model")
    assert np.array_equal(again.network.flat, model.network.flat)
    assert again.n_out == 2
    history = json.loads((folder / "model" / "history.json").read_text())
    assert history
    assert again.about["settings"]["n_in"] == 2
    assert again.split == model.split
    (name,) = again.about["trained_on"]
    assert re.fullmatch(r"moving patches \[[0-9a-f]{8}\]", name)  # and its content


def test_it_beats_persistence_on_unseen_frames(trained, moving):
    _, model = trained
    frames = moving[32:]
    errors = {"model": 0.0, "persistence": 0.0}
    for start in range(2, len(frames) - 1):
        observed = frames[start : start + 2]
        forecast = model(frames[start - 2 : start])
        errors["model"] += float(np.abs(forecast - observed).mean())
        errors["persistence"] += float(np.abs(frames[start - 1] - observed).mean())
    assert errors["model"] < 0.9 * errors["persistence"]


@pytest.mark.slow
def test_the_same_call_gives_the_same_bits(trained, moving, tmp_path):
    _, model = trained
    again = train(write_store(tmp_path / "rain.zarr", moving), tmp_path / "m", TINY, progress=False)
    assert np.array_equal(again.network.flat, model.network.flat)


def test_missing_input_is_read_as_dry_and_missing_output_stays_missing():
    batch = {"x": np.array([np.nan, 0], "f4"), "y": np.array([np.nan, 50], "f4")}
    from nowcast.model.model import RainScale

    scaled = ToNetwork(RainScale())(batch, np.random.default_rng(0))
    np.testing.assert_allclose(scaled["x"], [0, 0])
    np.testing.assert_allclose(scaled["y"], [np.nan, 1], rtol=1e-6)


@pytest.mark.slow
def test_missing_pixels_do_not_spoil_training(moving, tmp_path):
    """Nor in windows run backwards, where missing pixels of the output reach the input."""
    holes = moving.copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.2] = np.nan
    store = write_store(tmp_path / "rain.zarr", holes)
    settings = TINY.model_copy(update={"epochs": 0.5})
    model = train(store, tmp_path / "m", settings, progress=False)
    assert np.isfinite(model.network.flat).all()


@pytest.mark.slow
def test_too_few_frames_are_refused_and_nothing_is_written(moving, tmp_path):
    store = write_store(tmp_path / "rain.zarr", moving[:11])
    with pytest.raises(DataError, match=r"at least 3 x 4 frames, .* found 11"):
        train(store, tmp_path / "m", TINY, progress=False)
    assert not (tmp_path / "m").exists()


def test_unequal_steps_leave_no_window_and_are_named(moving, tmp_path):
    frames = moving[:30]
    minutes = np.cumsum(np.arange(30) % 3 + 4)
    time = np.datetime64("2020-06-01T00:00") + minutes * np.timedelta64(1, "m")
    grid = Grid.around(50.0, 5.0, size=(48, 48), spacing=1000.0)
    described = {"title": "t", "source": "s"}
    dataset = rain_dataset(grid, time, frames, attributes={}, global_attributes=described)
    write_zarr(dataset, tmp_path / "rain.zarr")
    with pytest.raises((DataError, SettingsError), match="min"):
        train(tmp_path / "rain.zarr", tmp_path / "m", TINY, progress=False)


@pytest.mark.long
def test_a_cluster_gives_the_same_model_and_says_when_workers_idle(moving, tmp_path):
    store, messages = write_store(tmp_path / "rain.zarr", moving), []

    def bits(name, shards, client=None, tiny=TINY):
        settings = tiny.model_copy(update={"shards": shards, "epochs": 1})
        model = train(store, tmp_path / name, settings, client, progress=False, say=messages.append)
        return model.network.flat.tobytes()

    with connect("local", workers=2) as client:
        assert bits("a", 8, client) == bits("b", 8)
        assert not [line for line in messages if "workers" in line]
        assert bits("c", 1, client) == bits("d", 1)
        assert bits("e", 2, client, TINY_MOVING) == bits("f", 2, tiny=TINY_MOVING)
    assert [line for line in messages if "workers" in line] == [
        "2 workers, 1 of them with work, one a shard; "
        "--set shards=2 uses all and gives another model"
    ]


@pytest.mark.slow
def test_several_stores_and_parts_that_are_named(moving, tmp_path):
    paths = [write_store(tmp_path / f"{n}.zarr", moving[10 * n : 10 * n + 20]) for n in range(3)]
    settings, messages = TINY.model_copy(update={"epochs": 0.2}), []
    model = train(
        paths[:1], tmp_path / "m", settings, progress=False, say=messages.append,
        validate=paths[1:2], test=paths[2:],
    )  # fmt: skip
    assert model.split.train[0].first == np.datetime64("2020-06-01T00:00")
    assert [len(getattr(model.split, part)) for part in ("train", "validation", "test")] == [1] * 3
    assert messages[0].startswith(f"{4 * 17} training windows from 2020-06-01T00:00:00")


@pytest.mark.slow
def test_training_goes_on_from_a_model(trained, moving, tmp_path):
    folder, model = trained
    settings = TrainSettings(
        tile=32, tile_stride=16, wet_fraction=0, epochs=0.1, rate=1e-6, fractions=(0.6, 0.2)
    )
    store = write_store(tmp_path / "rain.zarr", moving)
    again = train(store, tmp_path / "m", settings, progress=False, init=folder / "model")
    assert again.n_in == model.n_in
    assert again.n_out == model.n_out
    np.testing.assert_allclose(again.network.flat, model.network.flat, atol=1e-3)
    assert again.about["started_from"] == str(folder / "model")
    with pytest.raises(SettingsError, match="--lead: expected 20 min, the lead time of the model"):
        train(
            store, tmp_path / "m2", TINY.model_copy(update={"lead_minutes": 30}), progress=False,
            init=folder / "model",
        )  # fmt: skip
