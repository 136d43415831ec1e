from __future__ import annotations

import threading
import time
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

from daskdl.train import Callback, Trainer
from tests.daskdl.train.runs import digest, fit, problem


class Tasks(Callback):
    """Keeps which tasks of members the scheduler has at each group's end."""

    def __init__(self, client: Client, pause: float = 0.0) -> None:
        self._client, self._pause = client, pause
        self.seen: list[frozenset[str]] = []

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Look."""

        def members(dask_scheduler: Any) -> list[str]:
            return [str(key) for key in dask_scheduler.tasks if str(key).startswith("('gang-")]

        self.seen.append(frozenset(self._client.run_on_scheduler(members)))
        time.sleep(self._pause)


@pytest.fixture
def groups_of_one() -> Any:
    with dask.config.set({"daskdl.group-time": "1 us"}):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("groups_of_one")
def test_members_stay_from_group_to_group(client: Client) -> None:
    tasks = Tasks(client)
    together = fit(problem(2), iterations=12, client=client, engine="gang", callbacks=[tasks])
    assert len(tasks.seen) == 12
    # One may be slow to say its next word on a busy machine; then they leave, and come again.
    assert len(set(tasks.seen)) < 6
    assert {len(members) for members in tasks.seen} == {2}
    assert digest(together) == digest(fit(problem(2), iterations=12))


@pytest.mark.slow
@pytest.mark.usefixtures("groups_of_one")
def test_members_leave_when_their_turn_is_over(client: Client) -> None:
    tasks = Tasks(client)
    with dask.config.set({"daskdl.turn-time": 0}):
        together = fit(problem(2), iterations=6, client=client, engine="gang", callbacks=[tasks])
    assert len(set(tasks.seen)) == 6
    assert digest(together) == digest(fit(problem(2), iterations=6))


@pytest.mark.slow
@pytest.mark.usefixtures("groups_of_one")
def test_members_leave_when_the_driver_does_other_things(client: Client) -> None:
    tasks = Tasks(client, pause=1.5)
    together = fit(problem(2), iterations=3, client=client, engine="gang", callbacks=[tasks])
    assert len(set(tasks.seen)) == 3
    assert digest(together) == digest(fit(problem(2), iterations=3))


@pytest.mark.slow
@pytest.mark.usefixtures("groups_of_one")
def test_what_a_callback_asks_of_the_workers_is_done(client: Client) -> None:
    answers: list[int] = []

    class Ask(Callback):
        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            answers.append(client.submit(int, str(iteration), pure=False).result(60))

    fit(problem(2), iterations=2, client=client, engine="gang", callbacks=[Ask()])
    assert answers == [1, 2]


@pytest.mark.slow
@pytest.mark.usefixtures("groups_of_one")
def test_others_have_a_turn(client: Client) -> None:
    begun, done = threading.Event(), threading.Event()

    class Begun(Callback):
        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            begun.set()

        def on_epoch_end(self, trainer: Trainer, epoch: int, logs: dict[str, float]) -> bool:
            return done.is_set()

    def other() -> None:
        begun.wait(60)
        for number in range(3):  # each waits for a worker of the gang's
            client.submit(abs, -number, pure=False).result(60)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    options: dict[str, Any] = {"client": client, "engine": "gang", "callbacks": [Begun()]}
    with dask.config.set({"daskdl.turn-time": "300 ms"}):
        fit(problem(2), epochs=10_000, **options)
    thread.join(60)
    assert done.is_set()


@pytest.mark.usefixtures("groups_of_one")
def test_workers_that_are_threads_of_this_process_are_a_gang() -> None:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        together = fit(problem(), iterations=6, client=client, engine="gang")
    assert digest(together) == digest(fit(problem(), iterations=6))
