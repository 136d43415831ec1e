"""Both engines on a cluster give the bits of one process, name mistakes and keep nothing."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from daskdl.cluster.client import Cluster
from daskdl.data import Batches, SampleSet
from daskdl.errors import TrainingError
from daskdl.nn import BatchNorm, Linear, Module, ReLU, Sequential
from daskdl.optim import Adam, ClipNorm
from daskdl.train.engines.graph import group_graph
from daskdl.train.engines.step import State
from tests.daskdl.train.runs import (
    Do,
    On,
    check_same_bits,
    convolutions,
    digest,
    fit,
    images,
    problem,
)

both = pytest.mark.parametrize("engine", ["graph", "gang"])


# --- the same bits


def jittered(batch, rng):
    return {**batch, "x": batch["x"] + rng.normal(size=batch["x"].shape)}


def normalised() -> Module:
    """Return a network with running statistics, which are not rounded on the wire."""
    return Sequential(Linear(5, 8, seed=1), BatchNorm(8), ReLU(), Linear(8, 2, seed=2))


VALIDATED = {"epochs": 2, "batch_size": 6, "validation": images(2)}
ROUNDED = {"wire": "bfloat16", "batch_size": 3, "epochs": 1}  # some shards have no samples
CLIPPED = {"method": ClipNorm(Adam(0.1), 0.5), "wire": "bfloat16", "epochs": 2}
RUNS = {
    "validated": lambda **o: fit(images(3), convolutions(), **VALIDATED, **o),
    "no samples": lambda **o: fit(problem(7), batch_size=2, iterations=20, **o),
    "rounded": lambda **o: fit(problem(5), normalised(), **ROUNDED, **o),
    "clipped": lambda **o: fit(problem(), normalised(), **CLIPPED, **o),
    "draws": lambda **o: fit(problem(2).map(jittered), **o),  # graphs draw nothing ahead
}


@pytest.mark.parametrize(
    "run",
    [pytest.param(run, marks=pytest.mark.slow if i else ()) for i, run in enumerate(RUNS.values())],
    ids=list(RUNS),
)
@both
def test_any_number_of_workers_gives_the_bits_of_one_process(client_of, run, engine):
    workers = (2,) if engine == "graph" else (1, 2, 3) if run is RUNS["validated"] else (3,)
    check_same_bits(run, client_of, [(n, engine) for n in workers])


@pytest.mark.slow
@pytest.mark.parametrize("engine", [pytest.param("graph", marks=pytest.mark.long), "gang"])
@pytest.mark.usefixtures("short_groups")
def test_a_worker_that_joins_takes_part_and_groups_do_not_show(
    cluster, client_of, undisturbed, caplog, engine
):
    client = client_of(1)
    seen: set[str] = set()

    def join():
        cluster.scale(2)
        limit = time.monotonic() + 60
        while len(Cluster(client).workers("a test")) < 2:
            assert time.monotonic() < limit, "no worker came"
            time.sleep(0.02)

    def holding(trainer):
        keys_of = client.has_what().items()
        seen.update(w for w, keys in keys_of if any("load-" in str(key) for key in keys))

    with caplog.at_level("WARNING", "daskdl"):
        trainer = fit(
            problem(), client=client, engine=engine, callbacks=[Do(3, join), On(group=holding)]
        )
    assert digest(trainer) == undisturbed
    assert len(seen) == 2
    # Members of a gang go on with their own state.
    assert "starting again" not in caplog.text


@pytest.mark.slow
def test_classes_that_workers_cannot_import_train(client):
    class Local(Module):
        def __init__(self):
            self.layer = Linear(5, 2, seed=1)

        def forward(self, x):
            return self.layer(x)

    together = fit(problem(), Local(), client=client, engine="graph")
    assert digest(together) == digest(fit(problem(), Local()))


# --- mistakes


def frames_of(store: Path) -> SampleSet:
    """Write a store and return its samples: five inputs and two targets each."""
    rng, axes = np.random.default_rng(0), {"x": 5, "y": 2}
    data = xr.Dataset(
        {n: (("time", n), rng.gamma(0.3, 2, (30, k)).astype(np.float32)) for n, k in axes.items()}
    )
    data.chunk(time=1).to_zarr(store, consolidated=False)
    return SampleSet.from_xarray(store, dim="time", x="x", y="y", partitions=3)


@pytest.mark.kills
def test_frames_of_a_store_are_loaded_again_where_their_worker_died(client, tmp_path):
    frames = frames_of(tmp_path / "rain.zarr")

    def kill(batch):
        if os.getpid() != driver and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), 9)
        return batch

    driver = os.getpid()
    alone = digest(fit(frames))
    assert digest(fit(frames.map(kill), client=client, engine="graph")) == alone
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_samples_that_cannot_be_loaded_name_the_shard(client, tmp_path):
    store = tmp_path / "rain.zarr"
    frames = frames_of(store)

    spoil = On(begin=lambda trainer: store.rename(tmp_path / "moved"))
    with pytest.raises(
        TrainingError, match=r"shard \d at worker tcp.*: its samples cannot be loaded: DataE"
    ):
        fit(frames, client=client, engine="graph", callbacks=[spoil])


# --- the scheduler's part


@pytest.mark.slow
@both
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
