"""Engines: their choice, and what all of them share; the identity of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

from daskdl.data import SampleSet
from daskdl.errors import CheckpointError, TrainingError
from daskdl.nn import BatchNorm, Buffer, Dropout, Linear, Module, MSELoss, ReLU, Sequential
from daskdl.optim import LAMB, LBFGS, SGD, ClipNorm, Groups
from daskdl.optim.schedules import Plateau
from daskdl.train import Trainer
from daskdl.train.engines.choice import choose, is_adaptive, make_engine
from daskdl.train.engines.graph import GraphEngine
from daskdl.train.engines.inprocess import InProcessEngine
from daskdl.train.fit.checkpoint import check_identity
from daskdl.train.gang.engine import GangEngine
from tests.daskdl.clusters import small
from tests.daskdl.train.jobs import Descent, new_job
from tests.daskdl.train.runs import On, check_same_bits, fit, problem


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


METHODS = [
    *(Groups(SGD(Plateau(0.1, patience=0), 0.9)), ClipNorm(LAMB(1e-2), 1.0)),
    *(LBFGS(0.1), Descent()),  # a user's method, which returns new weights
]


class Largest(Module):
    """A user's layer, which replaces the array of its buffer."""

    def __init__(self) -> None:
        self.largest = Buffer(np.zeros(1, np.float32))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.largest.data = np.maximum(self.largest.data, np.abs(x.data).max())
        return x


def normalised() -> Module:
    """Return a network with running statistics and with draws."""
    return Sequential(
        *(Linear(5, 8, seed=1), BatchNorm(8), Largest(), ReLU(), Dropout(0.3)),
        *(Linear(8, 2, seed=2), BatchNorm(2)),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [METHODS[0], *(pytest.param(m, marks=pytest.mark.long) for m in METHODS[1:])],
    ids=lambda m: type(m).__name__,
)
def test_statistics_draws_and_methods_are_the_same_in_all_engines(method, client_of):
    def run(**options):
        options |= {"epochs": 2, "batch_size": 13, "validation": problem(2, 20)}
        return fit(problem(4), normalised(), method, **options)

    running = check_same_bits(run, client_of).model.flat_buffers
    assert not np.isin(running, [0, 1]).any()


def test_running_statistics_are_the_means_over_all_samples():
    """Two shards with different inputs have half of their own means in them."""
    x = np.repeat(np.float32([[1.0], [3.0]]), 8, 0)
    samples = SampleSet.from_arrays(x=x, y=x, partitions=2)
    trainer = Trainer(BatchNorm(1, momentum=0.5), MSELoss(), SGD(0.0))
    trainer.fit(samples, iterations=1, batch_size=16, progress=False)
    np.testing.assert_allclose(trainer.model.flat_buffers, [1.0, 0.5])


def begin_elsewhere(trainer: Trainer) -> None:
    trainer.model.load_flat(np.linspace(-1, 1, trainer.model.flat.size, dtype=np.float32))


def keep_small(trainer: Trainer) -> None:
    np.clip(trainer.model.flat, -0.1, 0.1, out=trainer.model.flat)


@pytest.mark.slow
def test_training_goes_on_from_weights_that_a_callback_puts_into_the_model(client_of, tmp_path):
    def run(**options):
        return fit(problem(), callbacks=[On(begin_elsewhere, epoch=keep_small)], **options)

    alone = check_same_bits(run, client_of, [(2, "graph"), (2, "gang")])
    assert np.abs(alone.model.flat).max() <= np.float32(0.1)
    losses = alone.history["loss"]
    saved = run(checkpoint=tmp_path)  # its state lies apart from the model
    np.testing.assert_array_equal(saved.history["loss"], losses)
    assert not np.array_equal(fit(problem(), epochs=3).history["loss"], losses)


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
    with pytest.raises(CheckpointError) as raised:
        check_identity(Path("runs"), IDENTITY, {**IDENTITY, name: wanted})
    sentence = str(raised.value)
    assert sentence.startswith("runs: holds the checkpoint of another run: ")
    assert message in sentence


def test_a_run_goes_on_from_its_own_checkpoint():
    check_identity(Path("runs"), json.loads(json.dumps(IDENTITY)), IDENTITY)
