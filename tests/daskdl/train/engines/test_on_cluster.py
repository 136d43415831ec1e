"""What engines on a cluster have in common, and clusters of several kinds of workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import dask
import pytest
from distributed import Client

from daskdl.cluster.failures import TaskError
from daskdl.errors import ClusterError, TrainingError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train.engines.job import Tools, pack
from daskdl.train.engines.on_cluster import OnCluster
from tests.daskdl.train.runs import fit, problem


class Attempts:
    """Raises its errors one after the other, then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.left, self.made = list(errors), 0

    def __call__(self) -> str:
        self.made += 1
        if self.left:
            raise self.left.pop(0)
        return "done"


@pytest.fixture
def engine(client: Client) -> Iterator[OnCluster]:
    job = pack(Tools(Linear(2, 2, seed=0), MSELoss(), SGD(0.1)), seed=0, threads=1)
    engine = OnCluster(client, job, problem(), None)
    yield engine
    engine.close()


def test_an_attempt_is_made_again_after_a_loss(engine: OnCluster, caplog) -> None:
    attempts = Attempts(TimeoutError("late"), ConnectionError("gone\nand more"))
    with caplog.at_level("WARNING", "daskdl"):
        assert engine._until_done("iteration 3", attempts) == "done"
    assert attempts.made == 3
    assert "iteration 3: starting again, since ConnectionError: gone" in caplog.text
    assert "and more" not in caplog.text


def test_attempts_are_limited(engine: OnCluster) -> None:
    attempts = Attempts(*[TimeoutError("late")] * 9)
    with (
        dask.config.set({"daskdl.attempts": 3}),
        pytest.raises(ClusterError, match=r"iteration 3: tried 3 times.* TimeoutError: late"),
    ):
        engine._until_done("iteration 3", attempts)
    assert attempts.made == 3


def test_a_mistake_is_not_tried_again(engine: OnCluster) -> None:
    attempts = Attempts(TaskError("shard 1", ZeroDivisionError("no")))
    with pytest.raises(TrainingError, match="shard 1: ZeroDivisionError: no") as raised:
        engine._until_done("iteration 3", attempts)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert attempts.made == 1


def test_every_attempt_has_a_number_of_its_own(engine: OnCluster) -> None:
    seen: list[int] = []

    def attempt() -> None:
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
def test_a_worker_without_avx2_is_told(
    engine: str, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
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
