"""Engines: their choice, the bits of one process in each, and the identity of a run."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

from daskdl.data import SampleSet
from daskdl.errors import CheckpointError, TrainingError
from daskdl.metrics import F1, ROCAUC, MeanSquaredError
from daskdl.nn import BatchNorm, Buffer, Dropout, Linear, Module, MSELoss, ReLU, Sequential
from daskdl.optim import LAMB, LBFGS, SGD, Adam, ClipNorm, Groups
from daskdl.optim.schedules import Plateau
from daskdl.train import Trainer
from daskdl.train.engines.choice import choose, is_adaptive, make_engine
from daskdl.train.engines.graph import GraphEngine
from daskdl.train.engines.inprocess import InProcessEngine
from daskdl.train.fit.checkpoint import check_identity
from daskdl.train.gang.engine import GangEngine
from tests.daskdl.clusters import small
from tests.daskdl.train.engines.test_precision import trained
from tests.daskdl.train.fit.test_several_inputs import fitted, two
from tests.daskdl.train.jobs import Descent, fit_ratings, new_job, ratings
from tests.daskdl.train.runs import On, convolutions, fit, images, network, problem


def test_auto_is_a_gang_unless_tasks_make_the_cluster_grow():
    assert choose("auto") == "gang"
    assert choose("auto", adaptive=True) == "graph"
    for named in ("graph", "gang"):
        assert choose(named) == choose(named, adaptive=True) == named


def test_the_engine_is_the_chosen_one(client):
    job, _ = new_job()

    def made(engine, where):
        return type(make_engine(engine, where, job, problem(), None))

    assert made("gang", None) is InProcessEngine
    assert made("auto", client) is made("gang", client) is GangEngine
    assert made("graph", client) is GraphEngine


def test_an_adaptive_cluster_is_known():
    with (
        small(0) as cluster,
        Client(cluster, set_as_default=False) as client,
        Client(cluster.scheduler_address, set_as_default=False) as other,
    ):
        assert not is_adaptive(client)
        adaptive = cluster.adapt(minimum=0, maximum=1)
        assert is_adaptive(client)
        assert not is_adaptive(other)  # another client does not know it
        adaptive.stop()
        assert not is_adaptive(client)
        adaptive = cluster.adapt(minimum=1, maximum=1)  # only to replace what has ended
        assert not is_adaptive(client)
        adaptive.stop()


# --- the same bits


class Largest(Module):
    """A user's layer, which replaces the array of its buffer."""

    def __init__(self) -> None:
        self.largest = Buffer(np.zeros(1, np.float32))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.largest.data = np.maximum(self.largest.data, np.abs(x.data).max())
        return x


def normalised() -> Module:
    """Return a network with running statistics, which are not rounded on the wire, and draws."""

    class Local(Sequential):
        """A class that workers cannot import."""

    return Local(
        *(Linear(5, 8, seed=1), BatchNorm(8), Largest(), ReLU(), Dropout(0.3)),
        *(Linear(8, 2, seed=2), BatchNorm(2)),
    )


def jittered(batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {**batch, "x": batch["x"] + rng.normal(size=batch["x"].shape)}


def measured(weights: bool, **options: Any) -> Trainer:
    """Fit samples with weights or without, and metrics of a label."""

    def samples(partitions: int) -> SampleSet:
        x = problem(1).head(53)["x"]
        y = (x[:, :4].sum(1, keepdims=True) > 0).astype(np.float32)
        weight = np.random.default_rng(4).lognormal(size=53).astype(np.float32)
        more = {"sample_weight": weight} if weights else {}
        return SampleSet.from_arrays(x=x, y=np.hstack([y, 1 - y]), **more, partitions=partitions)

    metrics = {"auc": ROCAUC(), "brier": MeanSquaredError(), "f1": F1(threshold=0.0)}
    trainer = Trainer(network(), MSELoss(), Adam(1e-2), seed=5, metrics=metrics)
    validation = {"validation": samples(3), "epochs": 2, "batch_size": 16}
    trainer.fit(samples(4), progress=False, **validation, **options)
    scores = trainer.evaluate(samples(3), batch_size=16, client=options.get("client"))
    assert scores == {name: trainer.history.epochs[-1][f"val_{name}"] for name in scores}
    assert [*scores] == ["loss", "auc", "brier", "f1"]
    if not weights:  # a metric divides by the weights, a loss by the samples
        np.testing.assert_allclose(trainer.history["brier"], trainer.history["loss"], rtol=1e-6)
        assert scores["brier"] == pytest.approx(scores["loss"], rel=1e-6)
    return trainer


def by(method: Any) -> Any:
    options = {"epochs": 2, "batch_size": 13, "validation": problem(2, 20)}
    return partial(fit, problem(4), normalised, method, **options)


VALIDATED = {"epochs": 2, "batch_size": 6, "validation": images(2)}
ROUNDED = {"wire": "bfloat16", "batch_size": 3, "epochs": 1}  # some shards have no samples
CLIPPED = {"method": ClipNorm(Adam(0.1), 0.5), "wire": "bfloat16", "epochs": 2}
ROWS = {"method": ClipNorm(Adam(0.05), 0.01)}  # members step all rows of tables
GRAPH, ONE, TWO, THREE = (2, "graph"), (1, "gang"), (2, "gang"), (3, "gang")
#: A fit, and the workers and engines that it is compared on, by its name.
RUNS: dict[str, tuple[Any, ...]] = {
    "validated": (partial(fit, images(3), convolutions, **VALIDATED), GRAPH, ONE, TWO, THREE),
    "no samples": (partial(fit, problem(7), batch_size=2, iterations=20), GRAPH, THREE),
    "rounded": (partial(fit, problem(5), normalised, **ROUNDED), GRAPH, THREE),
    "clipped": (partial(fit, problem(), normalised, **CLIPPED), GRAPH, THREE),
    "draws": (partial(fit, problem(2).map(jittered)), GRAPH, THREE),  # graphs draw nothing ahead
    "tables": (partial(fit_ratings, validation=ratings(2)), TWO, THREE),
    "tables, clipped": (partial(fit_ratings, **ROWS), TWO, THREE),
    "tables, no samples": (partial(fit_ratings, ratings(7), batch_size=2, iterations=12), TWO),
    "several inputs": (partial(fitted, two()), GRAPH, TWO),
    "bfloat16": (trained, GRAPH, THREE),
    "weights": (partial(measured, True), GRAPH, THREE),
    "metrics": (partial(measured, False), THREE),
    "schedule": (by(Groups(SGD(Plateau(0.1, patience=0), 0.9))), GRAPH, TWO, THREE),
    "LAMB": (by(ClipNorm(LAMB(1e-2), 1.0)), GRAPH, TWO, THREE),
    "LBFGS": (by(LBFGS(0.1)), GRAPH, TWO, THREE),
    "a user's method": (by(Descent()), GRAPH, TWO, THREE),  # it returns new weights
}
LONG = {"metrics", "LAMB", "LBFGS", "a user's method"}


def marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if name in LONG else [pytest.mark.slow] * (name != "validated")


@pytest.mark.parametrize(
    ("run", "on"),
    [pytest.param(run, on, id=name, marks=marks(name)) for name, (run, *on) in RUNS.items()],
)
def test_any_number_of_workers_gives_the_bits_of_one_process(client_of, run, on):
    def columns(trainer):
        history = trainer.history
        names = ["loss", *[name for name in history.epochs[0] if name.startswith("val_")]]
        return {
            **{name: history[name] for name in ("loss", "samples", *history.metrics)},
            "epochs": [[row[name] for name in names] for row in history.epochs],
        }

    alone = run(client=False)
    buffers = alone.model.flat_buffers
    assert not buffers.size or not np.isin(buffers, [0, 1]).all()
    for workers, engine in on:
        other = run(client=client_of(workers), engine=engine)
        np.testing.assert_equal(other.model.state_dict(), alone.model.state_dict())
        np.testing.assert_equal(columns(other), columns(alone))


def begin_elsewhere(trainer: Trainer) -> None:
    trainer.model.load_flat(np.linspace(-1, 1, trainer.model.flat.size, dtype=np.float32))


def keep_small(trainer: Trainer) -> None:
    np.clip(trainer.model.flat, -0.1, 0.1, out=trainer.model.flat)


@pytest.mark.slow
def test_training_goes_on_from_weights_that_a_callback_puts_into_the_model(client, tmp_path):
    def run(**options):
        return fit(problem(), callbacks=[On(begin_elsewhere, epoch=keep_small)], **options)

    alone = run()
    assert np.abs(alone.model.flat).max() <= np.float32(0.1)
    # The state of a fit with checkpoints lies apart from the model.
    for place in (
        {"client": client, "engine": "graph"},
        {"client": client},
        {"checkpoint": tmp_path},
    ):
        np.testing.assert_array_equal(run(**place).history["loss"], alone.history["loss"])
    assert not np.array_equal(fit(problem(), epochs=3).history["loss"], alone.history["loss"])


def test_running_statistics_are_the_means_over_all_samples():
    """Two shards with different inputs have half of their own means in them."""
    x = np.repeat(np.float32([[1.0], [3.0]]), 8, 0)
    samples = SampleSet.from_arrays(x=x, y=x, partitions=2)
    trainer = Trainer(BatchNorm(1, momentum=0.5), MSELoss(), SGD(0.0))
    trainer.fit(samples, iterations=1, batch_size=16, progress=False)
    np.testing.assert_allclose(trainer.model.flat_buffers, [1.0, 0.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.model.freeze(), "which parameters are frozen"),
        (lambda t: setattr(t, "optimizer", SGD(1.0)), "trainer.optimizer"),
        (lambda t: setattr(t, "loss", MSELoss()), "trainer.loss"),
    ],
)
def test_changes_that_a_fit_cannot_follow_are_refused(change, message):
    with pytest.raises(TrainingError, match=f"expected callbacks to leave {message} as it was"):
        fit(problem(), epochs=2, callbacks=[On(epoch=change)])


# --- the identity of a run

IDENTITY = {"model": [["0.weight", [5, 8]], ["2.weight", [8, 2]]], "batch_size": 8}


@pytest.mark.parametrize(
    ("name", "wanted", "message"),
    [
        ("batch_size", 16, "expected batch_size 16, found 8; give another folder"),
        (
            "model",
            [["0.weight", [5, 8]], ["2.weight", [8, 3]]],
            'expected model[1] ["2.weight", [8, 3]], found ["2.weight", [8, 2]];',
        ),
        ("model", [["0.weight", [5, 8]]], "expected model of 1 entries, found 2;"),
        ("seed", 1, "expected seed 1, found null;"),
    ],
)
def test_a_different_setting_is_named(name, wanted, message):
    check_identity(Path("runs"), json.loads(json.dumps(IDENTITY)), IDENTITY)
    with pytest.raises(CheckpointError) as raised:
        check_identity(Path("runs"), IDENTITY, {**IDENTITY, name: wanted})
    sentence = str(raised.value)
    assert sentence.startswith("runs: holds the checkpoint of another run: ")
    assert message in sentence
