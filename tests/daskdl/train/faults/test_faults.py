"""Faults that both engines must survive without a changed bit, or name in one sentence."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any

import dask
import numpy as np
import pytest

from daskdl.cluster.client import Cluster
from daskdl.collective import exchange
from daskdl.data.on_workers import shards
from daskdl.errors import ClusterError, TrainingError
from daskdl.nn import Linear, Module
from daskdl.train.engines import gradient, job, step
from tests.daskdl.train.runs import (
    SAMPLES,
    Do,
    On,
    Once,
    die,
    digest,
    first,
    fit,
    pids,
    problem,
    stopped,
)

pytestmark = pytest.mark.parametrize("engine", ["graph", "gang"])


# --- workers that die

#: The call of a worker in each phase of each engine, and the kind of message that it sends.
CALLS: dict[tuple[str, str], tuple[object, str, str]] = {
    ("graph", "load"): (shards, "load_shard", ""),
    ("graph", "gradient"): (step, "gradient", ""),
    ("graph", "reduce"): (gradient, "add", ""),
    ("graph", "update"): (step, "next_state", ""),
    ("graph", "broadcast"): (step, "next_weights", ""),
    ("graph", "validation"): (job, "evaluate", ""),
    ("gang", "load"): (shards, "load_shard", ""),
    ("gang", "gradient"): (step, "gradient", ""),
    ("gang", "reduce"): (exchange.Exchange, "swap", "reduce"),
    ("gang", "update"): (step, "update", ""),
    ("gang", "broadcast"): (exchange.Exchange, "swap", "weights"),
    ("gang", "validation"): (job, "evaluate", ""),
}


def arm(engine: str, phase: str, calls: int, marker: str) -> None:
    """Let this process die at its n-th call of the phase's function, if no other died before."""
    owner, name, kind = CALLS[engine, phase]
    function, called = getattr(owner, name), count(1)

    def dying(*args: Any, **options: Any) -> Any:
        counted = not kind or any(isinstance(a, str) and a.startswith(kind) for a in args)
        if counted and next(called) == calls and first(marker):
            die()
        return function(*args, **options)

    setattr(owner, name, dying)


@pytest.mark.kills
@pytest.mark.parametrize(
    "phase", ["load", "gradient", "reduce", "update", "broadcast", "validation"]
)
def test_a_worker_killed_in_any_phase_changes_nothing(client, tmp_path, undisturbed, engine, phase):
    died = tmp_path / "died"
    client.run(arm, engine, phase, 1 if phase in ("load", "validation") else 5, str(died))
    trainer = fit(problem(), client=client, engine=engine, validation=problem(3))
    assert died.exists()
    assert digest(trainer) == undisturbed
    assert trainer.history["samples"].sum() == 3 * SAMPLES


@pytest.mark.kills
def test_all_workers_killed_at_once_change_nothing(client, tmp_path, undisturbed, engine):
    killed = pids(client)

    def kill_all():
        for pid in sorted(killed, key=os.getpid().__eq__):  # this one last
            os.kill(pid, 9)

    samples = problem().map(Once(tmp_path / "died", 20, kill_all))
    assert digest(fit(samples, client=client, engine=engine)) == undisturbed
    assert (tmp_path / "died").exists()


@pytest.mark.kills
@pytest.mark.parametrize("start", [1, pytest.param(0, marks=pytest.mark.long)])
def test_workers_killed_between_groups_change_nothing(client, undisturbed, engine, start):
    """The second of two workers, or both."""
    killed = pids(client)[start:]
    kill = Do(9, lambda: [os.kill(pid, 9) for pid in killed])
    options = {"validation": problem(3), "callbacks": [kill]}
    assert digest(fit(problem(), client=client, engine=engine, **options)) == undisturbed
    assert kill.done


@pytest.mark.kills
def test_a_worker_that_dies_again_and_again_ends_the_fit(client, engine):
    def always(batch):
        if os.getpid() != driver and 52 in batch["x"][:, 4]:
            os.kill(os.getpid(), 9)
        return batch

    driver = os.getpid()
    lost = r".*worker tcp.*shards? .*lost" if engine == "gang" else ""
    text = rf"iteration.*tried 2 times{lost}.* ended meanwhile.*the tasks call .*always; see"
    with (
        dask.config.set({"daskdl.attempts": 2}),
        pytest.raises(ClusterError, match=text) as raised,
    ):
        fit(problem(2).map(always), client=client, engine=engine)
    assert "\n" not in str(raised.value)


# --- workers that stop, leave and come back

#: Seconds for which a worker is stopped; 10 would test no more.
STOPPED = 1.5


@pytest.mark.kills
def test_a_worker_that_stops_for_a_while_is_waited_for(client, tmp_path, undisturbed, engine):
    one, second = pids(client)
    stop = Once(tmp_path / "stopped", 20, lambda: stopped(one, STOPPED))
    other = Once(tmp_path / "stopped", 20, lambda: stopped(second, STOPPED))
    samples = problem().map(lambda b: (stop if os.getpid() == second else other)(b))
    began = time.monotonic()
    assert digest(fit(samples, client=client, engine=engine)) == undisturbed
    assert time.monotonic() - began > STOPPED


@pytest.mark.kills
@pytest.mark.usefixtures("short_groups")
def test_workers_may_be_retired(client_of, cluster, undisturbed, engine):
    client = client_of(3)
    leave = Do(3, lambda: cluster.scale(1))
    assert digest(fit(problem(), client=client, engine=engine, callbacks=[leave])) == undisturbed
    assert leave.done
    assert len(client.nthreads()) == 1


@pytest.mark.slow
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


@contextmanager
def when_logged(name: str, words: str, action: Callable[[], object]) -> Iterator[list[str]]:
    """Call ``action`` when a logger logs a message with these words; yield the messages."""
    messages: list[str] = []

    def listen(record: logging.LogRecord) -> bool:
        if words in record.getMessage():
            messages.append(record.getMessage())
            action()
        return True

    logging.getLogger(name).addFilter(listen)
    try:
        yield messages
    finally:
        logging.getLogger(name).removeFilter(listen)


@pytest.mark.kills
@pytest.mark.usefixtures("short_groups")
def test_a_run_whose_workers_are_all_gone_goes_on_when_some_come(
    client, cluster, undisturbed, engine
):
    leave = Do(5, lambda: cluster.scale(0))
    come = when_logged("daskdl.cluster.client", "no worker at tcp", lambda: cluster.scale(2))
    with come as messages:
        trainer = fit(problem(), client=client, engine=engine, callbacks=[leave])
    assert digest(trainer) == undisturbed
    assert re.match(r"iterations \d+ to \d+: no worker at tcp", messages[0])


# --- mistakes


class Picky(Module):
    """A user's layer that raises on one sample, except in the driver."""

    def __init__(self, number: int, driver: int) -> None:
        self.layer = Linear(5, 2, seed=1)
        self.number, self.driver = number, driver

    def forward(self, x: Any) -> Any:
        if os.getpid() != self.driver and self.number in np.asarray(x)[:, 4]:
            raise ZeroDivisionError("a mistake of the user's")
        return self.layer(x)


def test_an_exception_in_a_users_layer_names_worker_shard_and_iteration(client, engine):
    workers = "|".join(map(re.escape, client.nthreads()))
    text = rf"^iteration \d+ \(epoch 0\), shard 3 at worker ({workers}): ZeroDivisionError: a mis"
    with pytest.raises(TrainingError, match=text) as raised:
        fit(problem(), partial(Picky, 52, os.getpid()), client=client, engine=engine)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_worker_that_does_not_finish_is_named(client, tmp_path, engine):
    release, driver = tmp_path / "release", os.getpid()

    def wait(batch):
        limit = time.monotonic() + 20
        while os.getpid() != driver and 52 in batch["x"][:, 4] and not release.exists():
            assert time.monotonic() < limit
            time.sleep(0.01)
        return batch

    text = r"^iterations 0 to 0: .*stall-timeout = 4 s, found worker .* iteration 0, shard 3"
    with dask.config.set({"daskdl.stall-timeout": "4 s", "daskdl.group-time": "1 s"}):
        try:
            with pytest.raises(ClusterError, match=text):
                fit(problem().map(wait), client=client, engine=engine, batch_size=53)
        finally:
            release.touch()
