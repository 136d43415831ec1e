"""The current client, and awaited calls that do not block the event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from daskdl.cluster.current import current_client, in_thread
from daskdl.errors import SettingsError, TrainingError
from daskdl.metrics import MeanAbsoluteError
from daskdl.nn import MSELoss
from daskdl.optim import Adam
from daskdl.train import Callback, Trainer
from tests.daskdl.clusters import small
from tests.daskdl.train.runs import digest, iterations_in, network, problem


def new() -> Trainer:
    return Trainer(network(), MSELoss(), Adam(1e-3), seed=5, metrics=[MeanAbsoluteError()])


def options(**more: Any) -> dict[str, Any]:
    return {"epochs": 2, "batch_size": 8, "validation": problem(3), "progress": False, **more}


class Asks(Callback):
    """Waits for an answer of the event loop, which never comes from a blocked loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.threads = loop, set[int]()

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        self.threads.add(threading.get_ident())

        async def answer() -> int:
            return iteration

        asked = asyncio.run_coroutine_threadsafe(answer(), self.loop)
        assert asked.result(30) == iteration


@pytest.fixture(scope="module")
def alone() -> Trainer:
    trainer = new()
    trainer.fit(problem(), **options())
    return trainer


def check(trainer: Trainer, asks: Asks, alone: Trainer) -> None:
    assert digest(trainer) == digest(alone)
    for name in ("val_loss", "val_mean_absolute_error"):
        values = [[row[name] for row in t.history.epochs] for t in (trainer, alone)]
        assert values[0] == values[1]
    assert asks.threads
    assert threading.get_ident() not in asks.threads


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["graph", "gang"])
@pytest.mark.parametrize("default", [True, False])
def test_a_fit_with_an_asynchronous_client_is_awaited(
    cluster: LocalCluster, client: Client, alone: Trainer, engine: str, default: bool
) -> None:
    async def program() -> None:
        address, trainer = cluster.scheduler_address, new()
        asks = Asks(asyncio.get_running_loop())
        async with Client(address, asynchronous=True, set_as_default=default) as mine:
            more = {} if default else {"client": mine}
            history = await trainer.fit(
                problem(), engine=engine, **options(callbacks=[asks]), **more
            )
            assert history is trainer.history
            scores = await trainer.evaluate(problem(3), batch_size=8, **more)
            last = trainer.history.epochs[-1]
            assert scores == {name: last[f"val_{name}"] for name in scores}
        check(trainer, asks, alone)

    asyncio.run(program())


@pytest.mark.slow
@pytest.mark.parametrize("with_client", [True, False])
def test_a_fit_without_an_asynchronous_client_can_be_awaited(
    client: Client, alone: Trainer, with_client: bool
) -> None:
    async def program() -> None:
        trainer, asks = new(), Asks(asyncio.get_running_loop())
        more = {"client": client} if with_client else {}
        history = await trainer.fit_async(problem(), **options(callbacks=[asks]), **more)
        assert history is trainer.history
        check(trainer, asks, alone)

    asyncio.run(program())


def test_inside_an_event_loop_a_fit_needs_no_await(alone: Trainer) -> None:
    async def program() -> Trainer:
        trainer = new()
        trainer.fit(problem(), **options())
        return trainer

    assert digest(asyncio.run(program())) == digest(alone)


def test_a_cancelled_fit_ends_with_a_checkpoint_and_goes_on(tmp_path: Path, alone: Trainer) -> None:
    class Cancels(Callback):
        def __init__(self, cancel: Callable[[], None]) -> None:
            self.cancel = cancel

        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            if iteration >= 3:
                self.cancel()

    async def program() -> None:
        loop, cancelled = asyncio.get_running_loop(), asyncio.Event()

        def cancel() -> None:
            task.cancel()
            cancelled.set()

        async def answered() -> None:
            await cancelled.wait()

        def cancel_and_wait() -> None:
            loop.call_soon_threadsafe(cancel)
            asyncio.run_coroutine_threadsafe(answered(), loop).result(30)

        settings = options(checkpoint=tmp_path, callbacks=[Cancels(cancel_and_wait)])
        task = asyncio.ensure_future(new().fit_async(problem(), **settings))
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [t for t in threading.enumerate() if t.name.startswith("daskdl-shard")] == []
        (written,) = iterations_in(tmp_path)
        assert 3 <= written < 14
        again = new()
        await again.fit_async(problem(), **options(checkpoint=tmp_path))
        assert digest(again) == digest(alone)

    asyncio.run(program())


def test_the_thread_has_a_client_of_its_own(cluster: LocalCluster) -> None:
    def method(*, client: Client) -> tuple[Client, bool]:
        return client, client.submit(sum, (1, 2)).result(30) == 3

    async def program() -> None:
        address = cluster.scheduler_address
        async with Client(address, asynchronous=True, set_as_default=False) as mine:
            used, answers = await in_thread(method, client=mine)
            assert answers
            assert used is not mine
            assert used.loop.asyncio_loop is not mine.loop.asyncio_loop
            assert used.status == "closed"

    asyncio.run(program())


@pytest.mark.slow
def test_errors_reach_the_awaiting_caller(cluster: LocalCluster, client: Client) -> None:
    async def program() -> None:
        address = cluster.scheduler_address
        async with Client(address, asynchronous=True, set_as_default=False) as mine:
            with pytest.raises(SettingsError, match=r"epochs: .* found -1"):
                await new().fit(problem(), **options(epochs=-1, client=mine))
            with pytest.raises(TrainingError, match="ZeroDivisionError: a mistake of the user's"):
                await new().fit(problem().map(failing), **options(client=mine))
        with pytest.raises(SettingsError, match=r"connected, .* has been closed; make a new one"):
            await new().fit(problem(), **options(client=mine))
        other = Client(address, asynchronous=True, set_as_default=False)
        with pytest.raises(SettingsError, match=r"one that is connected, .*; await it first"):
            await new().fit(problem(), **options(client=other))
        await other
        await other.close()

    asyncio.run(program())


def failing(batch: Any) -> Any:
    if len(batch["x"]) > 1:
        raise ZeroDivisionError("a mistake of the user's")
    return batch


@pytest.mark.slow
def test_without_a_client_distributed_is_not_imported():
    code = (
        "import sys; from daskdl.cluster.current import current_client; "
        "print(current_client(), 'distributed' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["None", "False"]


def test_a_client_is_current_until_it_is_closed():
    assert current_client() is None
    with small(0) as cluster:
        with Client(cluster) as client:
            assert current_client() is client
        assert current_client() is None
        with Client(cluster, set_as_default=False):
            assert current_client() is None


def test_an_asynchronous_client_is_left_alone():
    async def program():
        async with (
            small(0, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            assert Client.current() is client
            assert current_client(asynchronous=True) is client
            return current_client()

    assert asyncio.run(program()) is None
