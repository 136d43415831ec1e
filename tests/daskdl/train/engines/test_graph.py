from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import dask
import numpy as np
import pytest
import xarray as xr
from distributed import Client, LocalCluster

from daskdl.data import Batches, SampleSet
from daskdl.errors import ClusterError, TrainingError
from daskdl.nn import Linear, Module
from daskdl.train import Callback, Trainer
from daskdl.train.engines.graph import group_graph
from daskdl.train.engines.step import State
from tests.daskdl.train.runs import (
    Do,
    Kill,
    Once,
    convolutions,
    die,
    digest,
    fail,
    fit,
    images,
    problem,
)

#: Axes of the samples of a store: five inputs and two targets each.
SIZES = {"x": 5, "y": 2}

ClientOf = Callable[[int], Client]


@pytest.fixture(scope="session")
def undisturbed() -> str:
    return digest(fit(problem(), validation=problem(3)))


# --- the same bits


@pytest.mark.slow
def test_any_number_of_workers_gives_the_bits_of_one_process(client_of: ClientOf) -> None:
    options = {"epochs": 2, "batch_size": 6, "validation": images(2)}
    alone = fit(images(3), convolutions(), **options)
    assert digest(alone) != digest(fit(images(2), convolutions(), **options))
    for workers in (1, 2, 3):
        together = fit(images(3), convolutions(), client=client_of(workers), **options)
        assert digest(alone) == digest(together)
        np.testing.assert_array_equal(alone.history["loss"], together.history["loss"])
        for a, b in zip(alone.history.epochs, together.history.epochs, strict=True):
            assert a["val_loss"] == b["val_loss"]


@pytest.mark.slow
def test_groups_of_iterations_do_not_show_in_the_result(client: Client, undisturbed: str) -> None:
    with dask.config.set({"daskdl.group-time": "1 ms"}):  # one iteration a group
        assert digest(fit(problem(), client=client)) == undisturbed


# --- workers that die


@pytest.mark.kills
@pytest.mark.parametrize("number", [1, 52])
def test_a_killed_worker_changes_nothing(
    client: Client, tmp_path: Path, undisturbed: str, number: int
) -> None:
    # Sample 1 lies with the weights, sample 52 does not (0 is looked at by the driver).
    samples = problem().map(Once(tmp_path / "died", number, die))
    assert digest(fit(samples, client=client)) == undisturbed
    assert (tmp_path / "died").exists()


@pytest.mark.kills
def test_all_workers_killed_at_once_change_nothing(
    client: Client, tmp_path: Path, undisturbed: str
) -> None:
    pids = list(client.run(os.getpid).values())
    samples = problem().map(Once(tmp_path / "died", 20, Kill(pids)))
    assert digest(fit(samples, client=client)) == undisturbed
    assert (tmp_path / "died").exists()


@pytest.mark.kills
@pytest.mark.long
def test_workers_killed_between_groups_change_nothing(client: Client, undisturbed: str) -> None:
    pids = list(client.run(os.getpid).values())
    killer = Do(9, lambda: [os.kill(pid, 9) for pid in pids])
    trainer = fit(problem(), client=client, validation=problem(3), callbacks=[killer])
    assert killer.done
    assert digest(trainer) == undisturbed


@pytest.mark.kills
def test_a_worker_that_dies_again_and_again_ends_the_fit(client: Client) -> None:
    def always(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if os.getpid() != driver:
            os.kill(os.getpid(), 9)
        return batch

    driver = os.getpid()
    with (
        dask.config.set({"daskdl.attempts": 2}),
        pytest.raises(ClusterError, match="tried 2 times"),
    ):
        fit(problem(2).map(always), client=client)


@pytest.mark.kills
def test_frames_of_a_store_are_loaded_again_where_their_worker_died(
    client: Client, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    data = xr.Dataset(
        {n: (("time", n), rng.gamma(0.3, 2, (30, k)).astype(np.float32)) for n, k in SIZES.items()}
    )
    data.chunk(time=1).to_zarr(tmp_path / "rain.zarr", consolidated=False)
    frames = SampleSet.from_xarray(tmp_path / "rain.zarr", dim="time", x="x", y="y", partitions=3)

    def kill(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if os.getpid() != driver and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), 9)
        return batch

    driver = os.getpid()
    alone = fit(frames)
    assert digest(fit(frames.map(kill), client=client)) == digest(alone)
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_a_worker_that_joins_takes_part(
    cluster: LocalCluster, client_of: ClientOf, undisturbed: str
) -> None:
    client = client_of(1)
    seen: set[str] = set()

    def join() -> None:
        cluster.scale(2)
        client.wait_for_workers(2, timeout=60)

    class Watch(Callback):
        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            held = client.has_what()
            seen.update(w for w, keys in held.items() if any("load-" in str(k) for k in keys))

    with dask.config.set({"daskdl.group-time": "1 ms"}):
        trainer = fit(problem(), client=client, callbacks=[Do(3, join), Watch()])
    assert digest(trainer) == undisturbed
    assert len(seen) == 2


def test_without_workers_the_fit_ends_with_a_sentence() -> None:
    with (
        LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False}
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        dask.config.set({"daskdl.no-workers-timeout": "300 ms"}),
        pytest.raises(ClusterError, match=r"expected workers at tcp.*found none for 0.3 s"),
    ):
        fit(problem(), client=client)


@pytest.mark.slow
def test_a_stuck_group_ends_with_a_sentence(client: Client, tmp_path: Path) -> None:
    release = tmp_path / "release"

    def wait(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        import time

        limit = time.monotonic() + 20
        while os.getpid() != driver and not release.exists() and time.monotonic() < limit:
            time.sleep(0.01)
        return batch

    driver = os.getpid()
    with (
        dask.config.set({"daskdl.stall-timeout": "100 ms"}),
        pytest.raises(ClusterError, match=r"iterations 0 to 0: .*stall-timeout"),
    ):
        fit(problem().map(wait), client=client)
    release.touch()


# --- mistakes


@pytest.mark.slow
def test_an_exception_names_iteration_and_shard(client: Client, tmp_path: Path) -> None:
    samples = problem().map(Once(tmp_path / "failed", 52, fail))
    with pytest.raises(
        TrainingError, match=r"iteration \d+ \(epoch 0\), shard 3 at worker tcp.*: ZeroDiv"
    ) as info:
        fit(samples, client=client)
    assert isinstance(info.value.__cause__, ZeroDivisionError)


def test_a_loss_that_is_not_finite_names_the_iteration(client: Client) -> None:
    def spoil(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        lost = batch["x"][:, 4] == 30
        return {**batch, "y": np.where(lost[:, None], np.nan, batch["y"])}

    with pytest.raises(
        TrainingError, match=r"iteration \d .* at worker .*: expected a finite loss"
    ):
        fit(problem().map(spoil), client=client)


@pytest.mark.slow
def test_samples_that_cannot_be_loaded_name_the_shard(client: Client, tmp_path: Path) -> None:
    data = xr.Dataset({n: (("time", n), np.ones((9, k), np.float32)) for n, k in SIZES.items()})
    store = tmp_path / "rain.zarr"
    data.chunk(time=1).to_zarr(store, consolidated=False)
    frames = SampleSet.from_xarray(store, dim="time", x="x", y="y", partitions=2)

    class Spoil(Callback):
        def on_fit_begin(self, trainer: Trainer) -> None:
            store.rename(tmp_path / "moved")

    with pytest.raises(
        TrainingError, match=r"shard \d at worker tcp.*: its samples cannot be loaded: DataE"
    ):
        fit(frames, client=client, callbacks=[Spoil()])


@pytest.mark.slow
def test_classes_that_workers_cannot_import_train(client: Client) -> None:
    class Own(Module):
        def __init__(self) -> None:
            self.layer = Linear(5, 2, seed=1)

        def forward(self, x: np.ndarray) -> object:
            return self.layer(x)

    assert digest(fit(problem(), Own(), client=client)) == digest(fit(problem(), Own()))


# --- with others on the cluster


@pytest.mark.slow
def test_two_fits_at_once_both_finish(client: Client, undisturbed: str) -> None:
    found: dict[int, str] = {}

    def one(i: int) -> None:
        found[i] = digest(fit(problem(), client=client, validation=problem(3)))

    threads = [threading.Thread(target=one, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == {0: undisturbed, 1: undisturbed}


@pytest.mark.slow
def test_the_scheduler_forgets_what_is_done(client: Client) -> None:
    held: list[int] = []

    class Count(Callback):
        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            # The graph that has just ended is released by now or in a moment.
            held.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    def spans() -> int:
        return client.run_on_scheduler(
            lambda dask_scheduler: len(dask_scheduler.extensions["spans"].spans)
        )

    before = spans()
    with dask.config.set({"daskdl.group-time": "60 ms"}):
        trainer = fit(problem(2), client=client, epochs=12, callbacks=[Count()])
    iterations = len(trainer.history)
    assert iterations > 80
    # Four tasks an iteration, of groups of a few iterations.
    assert max(held[-10:]) < 60
    # Dask keeps what it has measured of each span for ever: samples, job and tasks are one each.
    assert spans() <= before + 3


def test_the_graph_of_a_group_is_small() -> None:
    shards, iterations = 256, 4
    shares = list(Batches([100] * shards, 2560).shares(0, 0, iterations))
    state = State(np.zeros(10**6, np.float32), {}, 0)
    parts = [("load-run", 1, s) for s in range(shards)]
    graph, last = group_graph("run", 1, state, "state", "job", parts, shares)
    assert last in graph
    assert len(graph) == iterations * (2 * shards + 1 - 1)
    assert len(pickle.dumps(graph)) < 1_000_000
