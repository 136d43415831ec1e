"""The gang engine: any placement of shards, late members, concurrent fits, and cleaning up."""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import time
from typing import Any

import dask
import pytest
from distributed import Client

from daskdl.collective.rank_tasks import take_turn
from daskdl.data import Batches
from daskdl.train import Trainer
from daskdl.train.gang.engine import GangEngine, gang_graph
from daskdl.train.gang.members import Gang
from tests.daskdl.clusters import small_client
from tests.daskdl.train.jobs import new_job
from tests.daskdl.train.runs import (
    On,
    Once,
    digest,
    fit,
    network,
    pids,
    problem,
    stopped,
)


def gang(client: Client, samples: Any = None, **options: Any) -> Trainer:
    return fit(samples or problem(), client=client, engine="gang", **options)


# --- the same bits


@pytest.mark.slow
def test_any_placement_of_shards_gives_the_same_bits(client_of, monkeypatch):
    client, samples = client_of(3), problem(7)
    alone = digest(fit(samples))
    for order in ([0, 1, 2, 0, 1, 2, 0], [2, 2, 0, 1, 1, 0, 2]):

        def scattered(holders, workers, order=order):
            return [sorted(workers)[m % len(workers)] for m in order]  # one may be late

        monkeypatch.setattr("daskdl.data.on_workers.shards.assign", scattered)
        assert digest(gang(client, samples)) == alone


@pytest.mark.kills
def test_a_late_worker_is_dropped_and_taken_in_again(client, tmp_path, undisturbed, caplog):
    first, second = pids(client)
    stop = Once(tmp_path / "stopped", 20, lambda: stopped(first, 5))
    other = Once(tmp_path / "stopped", 20, lambda: stopped(second, 5))
    chosen = problem().map(lambda b: (stop if os.getpid() == second else other)(b))
    with dask.config.set({"daskdl.peer-timeout": "1 s"}), caplog.at_level("WARNING", "daskdl"):
        assert digest(gang(client, chosen)) == undisturbed
    assert "sent nothing for 1 s" in caplog.text


# --- the scheduler's part


@pytest.mark.parametrize("slices", [None, [f"slice-{rank}" for rank in range(256)]])
def test_the_graph_of_a_group_is_small(slices):
    # As many iterations as a group may have.
    shards, iterations = 256, GangEngine.group_limit
    shares = list(Batches([iterations] * shards, shards).shares(0, 0, iterations))
    addresses = tuple(f"tcp://10.0.0.{rank}:40000" for rank in range(shards))
    members = Gang("gang-run", addresses, tuple(range(shards)), 300.0)
    parts = [("load-run", 1, s) for s in range(shards)]
    graph = gang_graph("gang-run", 1, members, 40, ("job", "members"), slices, parts, shares)
    assert len(graph) == shards
    assert len(pickle.dumps(graph)) < 1_000_000


# --- other work on the cluster


@pytest.mark.slow
def test_fits_at_once_all_finish(client, undisturbed):
    digests: dict[str, str] = {}

    def fit_one(name):
        engine = name.split()[0]
        trainer = fit(problem(), client=client, engine=engine, validation=problem(3))
        digests[name] = digest(trainer)

    names = ["gang 1", "gang 2", "graph 1"]
    threads = [threading.Thread(target=fit_one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert digests == dict.fromkeys(names, undisturbed)


def new_engine(client: Client) -> GangEngine:
    return GangEngine(client, new_job(model=network())[0], problem(), None)


def test_a_gang_begins_when_the_gang_before_has_ended(client):
    # Otherwise members of two gangs could wait for members that queue behind the other gang.
    engine, entered = new_engine(client), threading.Event()

    def enter():
        take_turn(engine._cluster, engine._lock, "a test")
        entered.set()
        engine._lock.release()

    other = new_engine(client)
    take_turn(other._cluster, other._lock, "another")
    entering = threading.Thread(target=enter)
    entering.start()
    assert not entered.wait(0.5)
    other._lock.release()
    entering.join(30)
    assert entered.is_set()


def test_a_gang_that_has_ended_reports_nothing_to_the_scheduler(client):
    # A lock of Dask would, once for every group, for as long as the client lives.
    engine = new_engine(client)
    take_turn(engine._cluster, engine._lock, "a test")
    assert engine._lock.refresh_callback.is_running()
    engine._lock.release()
    engine.close()
    client.sync(asyncio.sleep, 0)
    assert not engine._lock.refresh_callback.is_running()


def test_a_fit_that_begins_leaves_others_meeting_places_alone(client):
    def places(dask_worker):
        return id(dask_worker.plugins["daskdl-gang"])

    new_engine(client)
    before = client.run(places)
    new_engine(client)
    assert client.run(places) == before


def test_workers_forget_a_run_that_has_ended(client):
    gang(client, epochs=1)

    def counts(dask_worker):
        meeting = dask_worker.plugins["daskdl-gang"]
        return len(meeting.kept), len(meeting._came), len(meeting._open)

    # A worker that is busy hears of the end a little later.
    limit = time.monotonic() + 60
    while set(remaining := client.run(counts).values()) != {(0, 0, 0)} and time.monotonic() < limit:
        time.sleep(0.02)
    assert set(remaining) == {(0, 0, 0)}


def tasks_of(client: Client, pause: float = 0.0) -> On:
    """Return a callback that keeps the scheduler's tasks of members at each group's end."""

    def members(dask_scheduler: Any) -> list[str]:
        return [str(key) for key in dask_scheduler.tasks if str(key).startswith("('gang-")]

    def look(trainer: Trainer) -> frozenset[str]:
        seen = frozenset(client.run_on_scheduler(members))
        time.sleep(pause)
        return seen

    return On(group=look)


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
def test_members_stay_from_group_to_group(client):
    tasks = tasks_of(client)
    together = fit(problem(2), iterations=12, client=client, engine="gang", callbacks=[tasks])
    assert len(tasks.seen) == 12
    # On a busy machine a request may come late; then members leave, and come again.
    assert len(set(tasks.seen)) < 6
    assert {len(members) for members in tasks.seen} == {2}
    assert digest(together) == digest(fit(problem(2), iterations=12))


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
@pytest.mark.parametrize(("turn", "pause", "groups"), [(0, 0.0, 6), ("60 s", 1.5, 3)])
def test_members_leave_when_their_turn_is_over_or_the_driver_is_busy(client, turn, pause, groups):
    tasks, options = tasks_of(client, pause), {"client": client, "engine": "gang"}
    with dask.config.set({"daskdl.turn-time": turn}):
        together = fit(problem(2), iterations=groups, callbacks=[tasks], **options)
    assert len(set(tasks.seen)) == groups
    assert digest(together) == digest(fit(problem(2), iterations=groups))


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
def test_a_callback_can_use_the_workers(client):
    def ask(trainer):
        return client.submit(int, str(len(trainer.history)), pure=False).result(60)

    asked = On(group=ask)
    fit(problem(2), iterations=2, client=client, engine="gang", callbacks=[asked])
    assert asked.seen == [1, 2]


@pytest.mark.slow
@pytest.mark.usefixtures("short_groups")
def test_other_tasks_have_a_turn(client):
    begun, done = threading.Event(), threading.Event()

    turn = On(group=lambda trainer: begun.set(), epoch=lambda trainer: done.is_set())

    def other():
        begun.wait(60)
        for number in range(3):  # each waits for a worker of the gang
            client.submit(abs, -number, pure=False).result(60)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    options: dict[str, Any] = {"client": client, "engine": "gang", "callbacks": [turn]}
    with dask.config.set({"daskdl.turn-time": "300 ms"}):
        fit(problem(2), epochs=10_000, **options)
    thread.join(60)
    assert done.is_set()


@pytest.mark.usefixtures("short_groups")
def test_workers_that_are_threads_of_this_process_are_a_gang():
    with small_client(2) as client:
        together = fit(problem(), iterations=6, client=client, engine="gang")
    assert digest(together) == digest(fit(problem(), iterations=6))
