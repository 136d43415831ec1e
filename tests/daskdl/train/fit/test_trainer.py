"""Trainer.fit: mistakes, where it runs, weights of samples, and a driver that is killed."""

from __future__ import annotations

import copy
import gc
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client

from daskdl.data import SampleSet
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn import Conv2d, GlobalAvgPool, LayerNorm, Linear, MSELoss, Sequential
from daskdl.optim import SGD
from daskdl.train import Trainer
from tests.daskdl.train.processes import fit_here, started
from tests.daskdl.train.runs import On, digest, fit, problem


def test_a_trainer_shows_its_model_loss_and_method():
    text = repr(Trainer(Linear(4, 200), MSELoss(), SGD(0.1)))
    assert text.startswith("Trainer(Linear of 1,000 parameters, MSELoss(), SGD(learning_rate=0.1")


# --- mistakes


def test_samples_that_the_model_cannot_read_are_refused_before_any_task(client, tmp_path):
    trainer = Trainer(Linear(4, 2), MSELoss(), SGD(0.1))
    with pytest.raises(ShapeError):
        trainer.fit(problem(), epochs=1, client=client, checkpoint=tmp_path / "c", progress=False)
    assert not (tmp_path / "c").exists()


# --- where it runs


@pytest.mark.slow
def test_the_default_client_is_used(cluster, client):
    before = {key for keys in client.has_what().values() for key in keys}  # of earlier tests

    def keys(trainer):
        return sum(key not in before for keys in client.has_what().values() for key in keys)

    alone, together = On(group=keys), On(group=keys)
    expected = digest(fit(problem(), callbacks=[alone]))
    assert max(alone.seen) == 0
    with Client(cluster):
        assert digest(fit(problem(), callbacks=[together])) == expected
    assert max(together.seen) >= 4  # shards


@pytest.mark.slow
def test_shards_are_the_partitions_by_default(client):
    four = digest(fit(problem(4)))
    assert digest(fit(problem(1), shards=4)) == four
    assert digest(fit(problem(7), shards=4, client=client)) == four
    assert digest(fit(problem(4), shards=1)) != four


@pytest.mark.slow
def test_after_a_fit_the_workers_hold_nothing(client):
    gc.collect()  # frees values of earlier exceptions
    fit(problem(), client=client, validation=problem(3))
    limit = time.monotonic() + 20
    while any(client.has_what().values()):
        assert time.monotonic() < limit, client.has_what()
        time.sleep(0.02)


# --- metrics and weights


def test_a_weight_counts_as_so_many_copies():
    """In one batch: the loss and the gradient are divided by the samples, not by their weights."""
    batch = problem(1).head(6)
    weight = np.array([0, 1, 2, 0, 3, 0], np.float32)
    copies = {name: np.repeat(array, weight.astype(int), 0) for name, array in batch.items()}
    trainers = [
        fit(SampleSet.from_arrays(**arrays, partitions=2), iterations=1, batch_size=6)
        for arrays in ({**batch, "sample_weight": weight}, copies)
    ]
    np.testing.assert_allclose(trainers[0].model.flat, trainers[1].model.flat, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(trainers[0].history["loss"], trainers[1].history["loss"], rtol=1e-5)


# --- interruptions


def test_numbers_of_numpy_are_accepted(tmp_path):
    one = fit(problem(), checkpoint=tmp_path / "c", batch_size=np.int64(9), epochs=1)
    assert digest(one) == digest(fit(problem(), batch_size=9, epochs=1))


def test_a_run_is_not_removed_by_one_that_cannot_start(tmp_path):
    fit(problem(), checkpoint=tmp_path / "c", epochs=1)
    with (
        dask.config.set({"daskdl.checkpoint-interval": "often"}),
        pytest.raises(SettingsError),
    ):
        fit(problem(), checkpoint=tmp_path / "c", epochs=1, resume=False)
    assert list((tmp_path / "c").glob("step-*"))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.kills
def test_a_killed_driver_leaves_a_run_that_goes_on_and_no_workers(tmp_path):
    """The same command, after kill -9 and on another number of workers."""
    with started("watched", tmp_path / "c") as driver:
        for _ in range(2):  # epochs
            workers = [int(pid) for pid in driver.stdout.readline().split()[3:]]
            driver.stdin.write("\n")
            driver.stdin.flush()
        driver.kill()
    assert len(workers) == 2
    limit = time.monotonic() + 60
    while any(map(alive, workers)):
        assert time.monotonic() < limit, "workers outlive their driver"
        time.sleep(0.05)
    output, error = started("cluster", tmp_path / "c", 1).communicate(timeout=120)
    assert "epoch 0" not in output, error  # it did not begin anew
    assert output.split()[-1] == fit_here()


# --- dtypes


@pytest.mark.parametrize("layer", [Conv2d(2, 3, 3, padding=1, seed=1), LayerNorm(2)])
def test_float64_samples_train_as_float32(layer):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 4, 4, 2)).astype("f4"), rng.normal(size=(12, 1))
    results = []
    for kind in ("f4", "f8"):
        head = Linear(3 if isinstance(layer, Conv2d) else 2, 1, seed=2)
        model = Sequential(copy.deepcopy(layer), GlobalAvgPool(), head)
        samples = SampleSet.from_arrays(x=x.astype(kind), y=y)
        trainer = Trainer(model, MSELoss(), SGD(0.1))
        trainer.fit(samples, epochs=2, batch_size=4, validation=samples, progress=False)
        results.append((digest(trainer), trainer.history.epochs[-1]["val_loss"]))
    assert results[0] == results[1]
