"""Trainer.fit: mistakes, where it runs, metrics, and how it goes on after an interruption."""

from __future__ import annotations

import copy
import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client
from sklearn.metrics import mean_squared_error, roc_auc_score

from daskdl.data import SampleSet
from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics import F1, ROCAUC, MeanSquaredError
from daskdl.nn import Conv2d, GlobalAvgPool, LayerNorm, Linear, MSELoss, Sequential
from daskdl.optim import SGD, Adam
from daskdl.train import BestModel, EarlyStopping, Trainer
from tests.daskdl.train.runs import Do, On, digest, fit, interrupt, network, problem

ROOT = Path(__file__).resolve().parents[4]


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
    def keys(trainer):
        return sum(map(len, client.has_what().values()))

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


def weighted(partitions: int) -> SampleSet:
    """Return weighted samples whose label says whether their sum is positive."""
    batch = problem(1).head(53)
    weight = np.random.default_rng(4).lognormal(size=53).astype(np.float32)
    y = (batch["x"][:, :4].sum(1, keepdims=True) > 0).astype(np.float32)
    y = np.concatenate([y, 1 - y], 1)
    return SampleSet.from_arrays(x=batch["x"], y=y, sample_weight=weight, partitions=partitions)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [True, pytest.param(False, marks=pytest.mark.long)])
def test_metrics_are_the_same_in_all_engines_and_of_all_samples(client_of, weights):
    def samples(partitions):
        return weighted(partitions) if weights else weighted(partitions).map(without)

    def run(**options):
        metrics = {"auc": ROCAUC(), "brier": MeanSquaredError(), "f1": F1(threshold=0.0)}
        trainer = Trainer(network(), MSELoss(), Adam(1e-2), seed=5, metrics=metrics)
        validation = samples(3)
        trainer.fit(
            samples(4), epochs=2, batch_size=16, validation=validation, progress=False, **options
        )
        return trainer

    def values(trainer):
        names = ("loss", "val_loss", "val_auc", "val_brier", "val_f1")
        return [[row[name] for name in names] for row in trainer.history.epochs]

    def training(trainer):
        return [trainer.history[name].tolist() for name in ("auc", "brier", "f1")]

    alone = run()
    if not weights:  # a metric divides by the weights, a loss by the samples
        np.testing.assert_allclose(alone.history["brier"], alone.history["loss"], rtol=1e-6)
        row = alone.history.epochs[0]
        assert row["brier"] == pytest.approx(row["loss"], rel=1e-6)
    whole = weighted(1).head(53)
    scores = alone.model.eval()(whole["x"]).data
    weight = np.repeat(whole["sample_weight"] if weights else np.ones(53), 2)
    expected = [
        theirs(whole["y"].ravel(), scores.ravel(), sample_weight=weight)
        for theirs in (roc_auc_score, mean_squared_error)
    ]
    assert values(alone)[-1][2:4] == pytest.approx(expected, rel=1e-6)
    for workers, engine in ((2, "graph"), (3, "gang")):
        other = run(client=client_of(workers), engine=engine)
        assert digest(other) == digest(alone)
        assert values(other) == values(alone)
        assert training(other) == training(alone)
        evaluated = other.evaluate(samples(3), batch_size=16, client=client_of(workers))
        assert [*evaluated.values()] == values(alone)[-1][1:]
    evaluated = alone.evaluate(samples(5))
    # The shards do not matter; a product of more rows may round differently.
    assert [*evaluated.values()][1:] == pytest.approx(values(alone)[-1][2:], rel=1e-6)
    assert [*evaluated] == ["loss", "auc", "brier", "f1"]


def without(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: batch[name] for name in ("x", "y")}


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


@pytest.mark.slow
@pytest.mark.parametrize("after", [3, 7, 11])
def test_a_run_interrupted_on_a_cluster_goes_on_in_this_process(client, tmp_path, after):
    def options():
        callbacks = [BestModel(), EarlyStopping(patience=5)]
        return {"validation": problem(3), "checkpoint": tmp_path / "c", "callbacks": callbacks}

    whole = fit(problem(), validation=problem(3), callbacks=[BestModel()])
    first = options()
    first["callbacks"].append(Do(after, interrupt))
    with pytest.raises(KeyboardInterrupt):
        fit(problem(), client=client, **first)
    again = fit(problem(), **options())
    assert digest(again) == digest(whole)
    np.testing.assert_array_equal(again.history["loss"], whole.history["loss"])


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


SCRIPT = """
import sys
from daskdl.cluster import connect
from daskdl.train import Callback
from tests.daskdl.train.runs import digest, fit, problem

class Say(Callback):
    def on_group_end(self, trainer, iteration):
        print(iteration, flush=True)

if __name__ == "__main__":
    workers, folder = int(sys.argv[1]), sys.argv[2]
    with connect("local", workers=workers) as client:
        print(*(client.run(__import__("os").getpid).values()), flush=True)
        trainer = fit(
            problem(), client=client, epochs=30, checkpoint=folder, checkpoint_every=10,
            callbacks=[Say()],
        )
    print(digest(trainer))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.kills
def test_a_killed_driver_leaves_a_run_that_goes_on_and_no_workers(tmp_path):
    """The same command, after kill -9 and on another number of workers."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def start(workers):
        return subprocess.Popen(
            [sys.executable, str(script), str(workers), str(tmp_path / "c")],
            stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    with start(2) as driver:
        assert driver.stdout is not None
        workers = [int(pid) for pid in driver.stdout.readline().split()]
        for line in driver.stdout:
            if int(line) > 60:
                driver.kill()
                break
    assert driver.returncode == -9
    limit = time.monotonic() + 60
    while any(map(alive, workers)):
        assert time.monotonic() < limit, "workers outlive their driver"
        time.sleep(0.05)
    with start(1) as driver:
        output, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0
    lines = output.split("\n")
    assert int(lines[1]) > 50  # it did not begin anew
    assert lines[-2] == digest(fit(problem(), epochs=30))


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
