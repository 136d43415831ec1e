"""What engines on a cluster have in common, and clusters of several kinds of workers."""

from __future__ import annotations

import logging
import pickle
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from fractions import Fraction
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client

from daskdl.cluster import processors
from daskdl.cluster.failures import TaskError
from daskdl.collective.plan import plans
from daskdl.data import Batches
from daskdl.errors import ClusterError, SettingsError, TrainingError
from daskdl.nn import Embedding, Linear, MSELoss, Sequential
from daskdl.optim import SGD
from daskdl.rows import Rows
from daskdl.train.engines.graph import group_graph
from daskdl.train.engines.job import Job, Tools, pack
from daskdl.train.engines.on_cluster import OnCluster
from daskdl.train.engines.step import State
from daskdl.train.engines.tables import Tables
from daskdl.version import __version__
from tests.daskdl.train.jobs import ITEMS, USERS, Recommender
from tests.daskdl.train.runs import On, fit, network, problem


def new_job() -> Job:
    return pack(Tools(MSELoss(), model=network(), optimizer=SGD(0.1)), seed=1, threads=1)


class Attempts:
    """Raises its errors one after the other, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.made = list(errors), 0

    def __call__(self) -> str:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.fixture
def engine(client: Client) -> Iterator[OnCluster]:
    engine = OnCluster(client, new_job(), problem(), None)
    yield engine
    engine.close()


def test_an_attempt_is_made_again_after_a_loss(engine, caplog):
    attempts = Attempts(TimeoutError("late"), ConnectionError("gone\nand more"))
    with caplog.at_level("WARNING", "daskdl"):
        assert engine._until_done("iteration 3", attempts) == "done"
    assert attempts.made == 3
    assert "iteration 3: starting again, since ConnectionError: gone" in caplog.text
    assert "and more" not in caplog.text


def test_attempts_are_limited(engine):
    attempts = Attempts(*[TimeoutError("late")] * 9)
    with (
        dask.config.set({"daskdl.attempts": 3}),
        pytest.raises(ClusterError, match=r"iteration 3: tried 3 times.* TimeoutError: late"),
    ):
        engine._until_done("iteration 3", attempts)
    assert attempts.made == 3


def test_a_mistake_is_not_tried_again(engine):
    attempts = Attempts(TaskError("shard 1", ZeroDivisionError("no")))
    with pytest.raises(TrainingError, match="shard 1: ZeroDivisionError: no") as raised:
        engine._until_done("iteration 3", attempts)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert attempts.made == 1


def test_every_attempt_has_a_number_of_its_own(engine):
    seen: list[int] = []

    def attempt():
        seen.append(engine._attempt)
        if len(seen) < 3:
            raise TimeoutError

    engine._until_done("a test", attempt)
    engine._until_done("a test", attempt)
    assert len(set(seen)) == len(seen) == 4


def _pretend(features: str | None) -> None:
    """Have numba compile for a processor of other features from now on."""
    from numba.core import config

    config.CPU_FEATURES = features


@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_a_worker_without_avx2_is_reported(engine, client, caplog):
    old, new = sorted(client.scheduler_info(n_workers=-1)["workers"])
    with caplog.at_level(logging.WARNING, "daskdl"):
        fit(problem(2), epochs=1, client=client, engine=engine)
        assert not [text for text in caplog.messages if "expected workers" in text]
        client.run(_pretend, "+sse2", workers=[old])
        try:
            fit(problem(2), epochs=1, client=client, engine=engine)
        finally:
            client.run(_pretend, None, workers=[old])
    (line,) = (text for text in caplog.messages if "expected workers" in text)
    assert line.startswith("start of the fit: expected workers of one kind, found bits of ")
    assert "alone, which lacks AVX2 or FMA; daskdl" in line
    assert f"({old})" in line
    assert f"({new})" in line


def test_a_checkout_that_is_not_installed_knows_its_bits(monkeypatch):
    def installed(name):
        assert name != "daskdl"
        return "1.0"

    monkeypatch.setattr(processors, "version", installed)
    assert f"; daskdl {__version__}, llvmlite 1.0, numba 1.0" in processors.bits()


def test_a_thread_unpacks_once_has_a_model_of_its_own_and_holds_the_last_two_jobs():
    here = pickle.loads(pickle.dumps(new_job()))
    assert here.tools() is here.tools()

    def turns():
        one, two, three = new_job(), new_job(), new_job()
        of_one, of_two = one.tools(), two.tools()
        assert one.tools() is of_one  # which makes it the latest
        three.tools()
        assert one.tools() is of_one
        assert two.tools() is not of_two
        return here.tools().model

    with ThreadPoolExecutor(1) as other:
        assert other.submit(turns).result() is not here.tools().model


def test_a_class_of_the_users_script_travels_by_value(monkeypatch):
    source = "class Loss:\n    def __call__(self, prediction, target):\n        return 42\n"
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "Loss", None, raising=False)
    exec(source, vars(main))
    job = pack(Tools(main.Loss(), model=network(), optimizer=SGD(0.1)), seed=1, threads=1)
    monkeypatch.delattr(main, "Loss")
    assert job.tools().loss(0, 0) == 42


@pytest.mark.parametrize("name", [field.name for field in fields(Tools)])
def test_an_object_that_does_not_pickle_is_named(name):
    parts = {"model": network(), "loss": MSELoss(), "optimizer": SGD(0.1)}
    with pytest.raises(SettingsError) as raised:
        pack(Tools(**{**parts, name: threading.Lock()}), seed=1, threads=1)
    sentence = str(raised.value)
    assert sentence.startswith(f"Trainer: expected {name.replace('_', ' ')} that can be pickled")
    assert "_thread.lock" in sentence
    assert "\n" not in sentence


def test_numbers_do_not_travel_with_a_job():
    model = Sequential(Embedding(10_000, 8, seed=0, sparse=True).freeze(), Linear(8, 1, seed=0))
    job = pack(Tools(MSELoss(), model=model, optimizer=SGD(0.1)), seed=0, threads=1)
    assert len(job.payload) < 10_000  # of 320,000
    unpacked = job.tools().model
    assert [(n, t.shape, t.requires_grad) for n, t in unpacked.tables.items()] == [
        ("layers.0.weight", (10_000, 8), False)
    ]
    assert not unpacked.flat.any()
    unpacked.restore(model.snapshot())
    np.testing.assert_array_equal(unpacked.snapshot(), model.snapshot())


TABLES = Tables(("a", "b"), ((5, 2), (3, 4)), 10)


def test_tables_of_a_model_lie_behind_its_vector():
    model = Recommender()
    tables, whole = Tables.of(model.joined), model.snapshot()
    assert tables.names == ("users.weight", "items.weight")
    assert tables.shapes == ((USERS, 6), (ITEMS, 7))
    assert (tables.start, tables.size) == (model.vector.size, whole.size)
    for view, parameter in zip(tables.views(whole), model.tables.values(), strict=True):
        np.testing.assert_array_equal(view, parameter.data)
        assert np.shares_memory(view, whole)
    assert not Tables.of(network().joined)
    assert not Tables.of(Recommender(sparse=False).joined)


def test_parts_have_each_number_once_and_whole_rows():
    for owners in ([0], [0, 1], [2, 0, 1, 1]):
        slices = [s for plan in plans(owners) for s in TABLES.slices(plan.owned)]
        numbers = sorted(k for s in slices for k in range(s.start, s.stop))
        assert numbers == list(range(10, TABLES.size))
        assert all((s.start - 10) % 2 == 0 for s in slices if s.stop <= 20)
        assert all((s.start - 20) % 4 == 0 for s in slices if s.start >= 20)


def test_stretches_step_their_own_rows_in_place():
    weights = np.zeros(TABLES.size, np.float32)
    span = Fraction(1, 5), Fraction(4, 5)  # rows 1 to 3 of five, 0 and 1 of three
    slots = {"velocity": np.zeros(3 * 2 + 2 * 4, np.float32), "rate": np.array(1.0)}
    stretches = TABLES.stretches(weights, slots, [span])
    assert [(s.table, s.first, s.weights.shape) for s in stretches] == [
        (0, 1, (3, 2)),
        (1, 0, (2, 4)),
    ]
    gradients = [Rows.all_of(np.ones(shape, np.float32)) for shape in TABLES.shapes]
    TABLES.step(SGD(1.0, momentum=0.5), stretches, gradients, 0, scale=3.0)
    a, b = TABLES.views(weights)
    np.testing.assert_array_equal(a[:, 0], [0, -3, -3, -3, 0])
    np.testing.assert_array_equal(b[:, 0], [-3, -3, 0])
    np.testing.assert_array_equal(slots["velocity"], 3)


# --- the scheduler's part


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["graph", "gang"])
@pytest.mark.usefixtures("short_groups")
def test_the_scheduler_forgets_finished_tasks(client, engine):
    def count(trainer):
        # The graph that has just ended is released by now or in a moment.
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

    def spans():
        return client.run_on_scheduler(
            lambda dask_scheduler: len(dask_scheduler.extensions["spans"].spans)
        )

    before, tasks = spans(), On(group=count)
    fit(problem(2), client=client, engine=engine, iterations=15, callbacks=[tasks])
    assert len(tasks.seen) == 15
    assert max(tasks.seen[5:]) < 30
    # Dask keeps measurements of each span for ever: samples, job and tasks are one span each.
    assert spans() <= before + 3


def test_the_graph_of_a_group_is_small():
    shards, iterations = 256, 4
    shares = list(Batches([100] * shards, 2560).shares(0, 0, iterations))
    state = State(np.zeros(10**6, np.float32), {}, 0)
    parts: list[Any] = [("load-run", 1, s) for s in range(shards)]
    graph, last = group_graph("run", 1, state, "state", "job", parts, shares)
    assert last in graph
    assert len(graph) == iterations * (2 * shards + 1 - 1)
    assert len(pickle.dumps(graph)) < 1_000_000
