from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskdl.cluster.client import Cluster
from daskdl.data import Batches
from daskdl.errors import ClusterError, TrainingError
from daskdl.nn import MSELoss
from daskdl.optim import Adam, ClipNorm
from daskdl.train import Callback, Trainer
from daskdl.train.engines.job import Tools, pack
from daskdl.train.gang.engine import GangEngine, gang_graph
from daskdl.train.gang.members import Gang
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
    network,
    problem,
    stopped,
)

ClientOf = Callable[[int], Client]


def gang(client: Client, samples: Any = None, **options: Any) -> Trainer:
    return fit(samples or problem(), client=client, engine="gang", **options)


@pytest.fixture(scope="session")
def undisturbed() -> str:
    return digest(fit(problem(), validation=problem(3)))


def pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


# --- the same bits


def test_any_number_of_workers_gives_the_bits_of_one_process(client_of: ClientOf) -> None:
    options = {"epochs": 2, "batch_size": 6, "validation": images(2)}
    alone = fit(images(3), convolutions(), **options)
    for workers in (1, 2, 3):
        together = gang(client_of(workers), images(3), model=convolutions(), **options)
        assert digest(alone) == digest(together)
        for column in ("loss", "samples"):
            np.testing.assert_array_equal(alone.history[column], together.history[column])
        for a, b in zip(alone.history.epochs, together.history.epochs, strict=True):
            assert a["val_loss"] == b["val_loss"]


@pytest.mark.slow
def test_shards_that_lie_anyhow_give_the_same_bits(client_of: ClientOf, monkeypatch) -> None:
    client, samples = client_of(3), problem(7)
    alone = digest(fit(samples))
    for order in ([0, 1, 2, 0, 1, 2, 0], [2, 2, 0, 1, 1, 0, 2]):

        def scattered(holders: Any, workers: Any, order: Any = order) -> list[str]:
            return [sorted(workers)[m % len(workers)] for m in order]  # one may be late

        monkeypatch.setattr("daskdl.data.on_workers.shards.assign", scattered)
        assert digest(gang(client, samples)) == alone


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
def test_groups_of_iterations_do_not_show_in_the_result(
    client: Client, undisturbed: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING", "daskdl"):
        assert digest(gang(client)) == undisturbed
    # Members go on with the state that they have kept.
    assert "starting again" not in caplog.text


@pytest.mark.slow
def test_batches_without_samples_of_some_shards_give_the_same_bits(client: Client) -> None:
    options = {"batch_size": 2, "iterations": 20}
    assert digest(gang(client, problem(7), **options)) == digest(fit(problem(7), **options))


@pytest.mark.kills
def test_a_method_that_clips_the_norm_gives_the_same_bits(client: Client, tmp_path: Path) -> None:
    def clipped(**options: Any) -> str:
        trainer = Trainer(network(), MSELoss(), ClipNorm(Adam(0.1), 0.5), seed=5)
        trainer.fit(problem(), epochs=2, batch_size=8, progress=False, **options)
        return digest(trainer)

    alone, options = clipped(), {"client": client, "engine": "gang"}
    assert clipped(**options) == alone
    with dask.config.set({"daskdl.group-time": "1 us"}):
        assert clipped(callbacks=[Do(5, lambda: os.kill(pids(client)[0], 9))], **options) == alone


# --- workers that die


@pytest.mark.kills
@pytest.mark.parametrize("number", [1, 52])
def test_a_killed_worker_changes_nothing(
    client: Client, tmp_path: Path, undisturbed: str, number: int
) -> None:
    samples = problem().map(Once(tmp_path / "died", number, die))
    assert digest(gang(client, samples)) == undisturbed
    assert (tmp_path / "died").exists()


@dataclass(frozen=True)
class DeadlyAdam(Adam):
    """Kills the process that makes the update of iteration 9 first."""

    marker: str = ""

    def update(self, weights: Any, gradient: Any, state: Any, iteration: int, **how: Any) -> Any:
        if iteration == 9:
            Once(Path(self.marker), 0, die)({"x": np.zeros((1, 5))})
        return super().update(weights, gradient, state, iteration, **how)


@pytest.mark.long  # test_faults' phase update is the same on this engine
@pytest.mark.kills
def test_a_worker_killed_in_its_update_changes_nothing(
    client: Client, tmp_path: Path, undisturbed: str
) -> None:
    trainer = Trainer(network(), MSELoss(), DeadlyAdam(1e-3, marker=str(tmp_path / "d")), seed=5)
    options = {"client": client, "engine": "gang", "progress": False}
    trainer.fit(problem(), epochs=3, batch_size=8, **options)
    assert digest(trainer) == undisturbed
    assert (tmp_path / "d").exists()


@pytest.mark.kills
def test_all_workers_killed_at_once_change_nothing(
    client: Client, tmp_path: Path, undisturbed: str
) -> None:
    samples = problem().map(Once(tmp_path / "died", 20, Kill(pids(client))))
    assert digest(gang(client, samples)) == undisturbed
    assert (tmp_path / "died").exists()


@pytest.mark.kills
def test_workers_killed_between_groups_change_nothing(client: Client, undisturbed: str) -> None:
    all_pids = pids(client)
    killer = Do(9, lambda: [os.kill(pid, signal.SIGKILL) for pid in all_pids])
    assert digest(gang(client, validation=problem(3), callbacks=[killer])) == undisturbed
    assert killer.done


@pytest.mark.kills
def test_a_worker_that_dies_again_and_again_ends_the_fit(client: Client) -> None:
    def always(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if os.getpid() != driver and 52 in batch["x"][:, 4]:
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    driver = os.getpid()
    with (
        dask.config.set({"daskdl.attempts": 2}),
        pytest.raises(
            ClusterError,
            match=r"iteration.*tried 2 times.*worker tcp.*shards? .*lost.* ended meanwhile"
            r".*the tasks call .*always; see",
        ),
    ):
        gang(client, problem(2).map(always))


# --- workers that stop, leave and come


@pytest.mark.kills
def test_a_worker_that_is_late_is_left_and_taken_in_again(
    client: Client, tmp_path: Path, undisturbed: str, caplog
) -> None:
    first, second = pids(client)
    stop = Once(tmp_path / "stopped", 20, lambda: stopped(first, 5))
    other = Once(tmp_path / "stopped", 20, lambda: stopped(second, 5))
    chosen = problem().map(lambda b: (stop if os.getpid() == second else other)(b))
    with dask.config.set({"daskdl.peer-timeout": "1 s"}), caplog.at_level("WARNING", "daskdl"):
        assert digest(gang(client, chosen)) == undisturbed
    assert "sent nothing for 1 s" in caplog.text


@pytest.mark.long  # test_faults' retired workers are the same on this engine
@pytest.mark.kills
def test_workers_that_are_retired_are_left(client_of: ClientOf, cluster: LocalCluster) -> None:
    client = client_of(3)
    with dask.config.set({"daskdl.group-time": "1 us"}):
        leave = Do(3, lambda: cluster.scale(1))
        trainer = gang(client, epochs=4, callbacks=[leave])
    assert len(client.nthreads()) == 1
    assert digest(trainer) == digest(fit(problem(), epochs=4))


@pytest.mark.slow
def test_a_worker_that_joins_takes_part(
    cluster: LocalCluster, client_of: ClientOf, undisturbed: str
) -> None:
    client = client_of(1)
    seen: set[str] = set()

    def join() -> None:
        cluster.scale(2)
        limit = time.monotonic() + 60
        while len(Cluster(client).workers("a test")) < 2:
            assert time.monotonic() < limit, "no worker came"
            time.sleep(0.02)

    class Watch(Callback):
        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            held = client.has_what()
            seen.update(w for w, keys in held.items() if any("load-" in str(k) for k in keys))

    with dask.config.set({"daskdl.group-time": "1 us"}):
        trainer = gang(client, callbacks=[Do(3, join), Watch()])
    assert digest(trainer) == undisturbed
    assert len(seen) == 2


# --- mistakes


@pytest.mark.slow
def test_an_exception_names_iteration_and_shard(client: Client, tmp_path: Path) -> None:
    samples = problem().map(Once(tmp_path / "failed", 52, fail))
    with pytest.raises(
        TrainingError, match=r"iteration \d+ \(epoch 0\), shard 3 at worker tcp.*: ZeroDiv"
    ) as info:
        gang(client, samples)
    assert isinstance(info.value.__cause__, ZeroDivisionError)


def test_a_loss_that_is_not_finite_names_the_iteration(client: Client) -> None:
    def spoil(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        lost = batch["x"][:, 4] == 30
        return {**batch, "y": np.where(lost[:, None], np.nan, batch["y"])}

    with pytest.raises(
        TrainingError, match=r"iteration \d .* at worker .*: expected a finite loss"
    ):
        gang(client, problem().map(spoil))


def test_a_stuck_group_ends_with_a_sentence(client: Client, tmp_path: Path) -> None:
    release = tmp_path / "release"

    def wait(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        limit = time.monotonic() + 20
        while os.getpid() != driver and not release.exists() and time.monotonic() < limit:
            time.sleep(0.01)
        return batch

    driver = os.getpid()
    with (
        dask.config.set({"daskdl.stall-timeout": "100 ms"}),
        pytest.raises(ClusterError, match=r"iterations 0 to 0: .*stall-timeout"),
    ):
        gang(client, problem().map(wait))
    release.touch()


# --- the scheduler's part


@pytest.mark.parametrize("slices", [None, [f"slice-{rank}" for rank in range(256)]])
def test_the_graph_of_a_group_is_small(slices: Any) -> None:
    # As many iterations as a group may have.
    shards, iterations = 256, GangEngine.group_limit
    shares = list(Batches([iterations] * shards, shards).shares(0, 0, iterations))
    addresses = tuple(f"tcp://10.0.0.{rank}:40000" for rank in range(shards))
    members = Gang("gang-run", addresses, tuple(range(shards)), 300.0)
    parts = [("load-run", 1, s) for s in range(shards)]
    graph = gang_graph("gang-run", 1, members, 40, ("job", "members"), slices, parts, shares)
    assert len(graph) == shards
    assert len(pickle.dumps(graph)) < 1_000_000


# --- with others on the cluster


@pytest.mark.slow
def test_fits_at_once_all_finish(client: Client, undisturbed: str) -> None:
    found: dict[str, str] = {}

    def one(name: str) -> None:
        engine = name.split()[0]
        trainer = fit(problem(), client=client, engine=engine, validation=problem(3))
        found[name] = digest(trainer)

    names = ["gang 1", "gang 2", "graph 1"]
    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == dict.fromkeys(names, undisturbed)


def test_a_gang_begins_when_the_one_before_has_ended(client: Client) -> None:
    # Else members of either could wait on one worker for one that queues on the other.
    job = pack(Tools(network(), MSELoss(), Adam()), seed=0, threads=1)
    engine, entered = GangEngine(client, job, problem(), None), threading.Event()

    def enter() -> None:
        engine._take_turn("a test")
        entered.set()
        engine._lock.release()

    other = GangEngine(client, job, problem(), None)
    other._take_turn("another")
    entering = threading.Thread(target=enter)
    entering.start()
    assert not entered.wait(0.5)
    other._lock.release()
    entering.join(30)
    assert entered.is_set()


def test_a_gang_that_has_ended_reports_nothing_to_the_scheduler(client: Client) -> None:
    # A lock of Dask's would, once for every group that there was, for as long as the client is.
    job = pack(Tools(network(), MSELoss(), Adam()), seed=0, threads=1)
    engine = GangEngine(client, job, problem(), None)
    engine._take_turn("a test")
    assert engine._lock.refresh_callback.is_running()
    engine._lock.release()
    engine.close()
    client.sync(asyncio.sleep, 0)
    assert not engine._lock.refresh_callback.is_running()


def test_a_fit_that_begins_leaves_others_meeting_places_alone(client: Client) -> None:
    def places(dask_worker: Any) -> int:
        return id(dask_worker.plugins["daskdl-gang"])

    job = pack(Tools(network(), MSELoss(), Adam()), seed=0, threads=1)
    GangEngine(client, job, problem(), None)
    before = client.run(places)
    GangEngine(client, job, problem(), None)
    assert client.run(places) == before


@pytest.mark.slow
def test_the_scheduler_forgets_what_is_done(client: Client) -> None:
    held: list[int] = []

    class Count(Callback):
        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            held.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    with dask.config.set({"daskdl.group-time": "1 us"}):
        gang(client, problem(2), iterations=15, callbacks=[Count()])
    assert len(held) == 15
    assert max(held[5:]) < 30


def test_workers_forget_a_run_that_has_ended(client: Client) -> None:
    gang(client, epochs=1)

    def kept(dask_worker: Any) -> tuple[int, int, int]:
        meeting = dask_worker.plugins["daskdl-gang"]
        return len(meeting.kept), len(meeting._came), len(meeting._open)

    # A worker that is busy with other things hears of it a little later.
    limit = time.monotonic() + 60
    while set(found := client.run(kept).values()) != {(0, 0, 0)} and time.monotonic() < limit:
        time.sleep(0.02)
    assert set(found) == {(0, 0, 0)}
