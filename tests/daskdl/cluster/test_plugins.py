"""Worker plugins, the worker of each shard, and runtime settings."""

from __future__ import annotations

import asyncio
import datetime
from collections import Counter
from collections.abc import Iterator

import dask
import pytest
from distributed import Client, Worker, WorkerPlugin
from hypothesis import given
from hypothesis import strategies as st

from daskdl.cluster.client import Cluster
from daskdl.cluster.settings import n_bytes, seconds, setting
from daskdl.cluster.tasks import Place, assign
from daskdl.errors import ClusterError, SettingsError
from tests.daskdl.clusters import small_client


@pytest.fixture
def workers() -> Iterator[Client]:
    with small_client(3) as client:
        yield client


class Leaving(WorkerPlugin):
    """The first workers that set it up break their connections, and close if ``whole``."""

    name, idempotent = "leaving", True
    losses = 0

    def __init__(self, leaving: int, whole: bool) -> None:
        self.leaving, self.whole = leaving, whole

    async def setup(self, worker: Worker) -> None:
        if Leaving.losses < self.leaving:
            Leaving.losses += 1
            for comm in list(worker._comms):
                comm.abort()
            if self.whole:
                asyncio.get_running_loop().create_task(worker.close())
            await asyncio.sleep(0.1)


def test_a_lost_worker_is_passed_over(workers: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leaving, "losses", 0)
    Cluster(workers).install(Leaving(1, True), "a test")
    assert Leaving.losses == 1
    installed = workers.run(lambda dask_worker: "leaving" in dask_worker.plugins)
    assert list(installed.values()) == [True, True]


def test_losses_without_end_are_reported(workers: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leaving, "losses", 0)
    with pytest.raises(ClusterError, match=r"^a test: .* found that 5 times one was lost \("):
        Cluster(workers).install(Leaving(1000, False), "a test")


ADDRESSES = "abcde"
workers_of = st.dictionaries(st.sampled_from(ADDRESSES), st.integers(1, 4), min_size=1)
holders_of = st.lists(st.none() | st.sampled_from(ADDRESSES), min_size=1, max_size=30)


@pytest.mark.slow
@given(holders_of, workers_of)
def test_each_worker_has_its_share_and_none_moves_without_need(holders, workers) -> None:
    owners = assign(holders, workers)
    assert len(owners) == len(holders)
    share = {w: -(-len(holders) * n // sum(workers.values())) for w, n in workers.items()}
    load = Counter(owners)
    assert all(load[w] <= share[w] for w in load)
    counts = Counter(holders)
    for w, most in share.items():
        stayed = sum(h == o == w for h, o in zip(holders, owners, strict=True))
        assert stayed == min(counts[w], most)


@given(holders_of, workers_of)
def test_placed_shards_stay(holders, workers) -> None:
    owners = assign(holders, workers)
    assert assign(owners, dict(reversed(workers.items()))) == owners


@pytest.mark.parametrize(
    ("holders", "workers", "expected"),
    [
        ([None] * 6, {"b": 1, "a": 1}, "aaabbb"),  # neighbours together, in any order of workers
        ([None] * 6, {"a": 1, "b": 2}, "bbbbaa"),  # by threads
        (list("aaaa"), {"a": 1, "b": 1}, "aabb"),  # a worker has come
        (list("abab"), {"b": 1}, "bbbb"),  # a worker has gone
        ([None, "b", None, "b"], {"a": 1, "b": 1}, "abab"),
    ],
)
def test_shards_are_placed(holders, workers, expected: str) -> None:
    assert assign(holders, workers) == list(expected)


def test_a_task_goes_to_the_worker_of_the_shard_that_ends_its_key() -> None:
    assert Place(["a", "b", "c"])(("gradient-run", 7, 0, 2)) == ["c"]


def test_every_default_is_of_its_kind() -> None:
    kinds = {"attempts": setting, "threads": setting, "bucket-size": n_bytes}
    for name in dask.config.get("daskdl"):
        kinds.get(name, seconds)(name)


def test_settings_of_the_user_rule() -> None:
    with dask.config.set({"daskdl.group-time": "90 ms", "daskdl.threads": 3}):
        assert seconds("group-time") == 0.09
        assert setting("threads") == 3
    with dask.config.set({"daskdl.group-time": 5}):
        assert seconds("group-time") == 5
    with dask.config.set({"daskdl.group-time": datetime.timedelta(minutes=2)}):
        assert seconds("group-time") == 120
    assert seconds("group-time") == 8
    assert n_bytes("bucket-size") == 0
    with dask.config.set({"daskdl.bucket-size": "4 MiB"}):
        assert n_bytes("bucket-size") == 4 << 20
    assert setting("threads") is None


@pytest.mark.parametrize("value", ["soon", "5 parsecs", "", None, -1, [1]])
def test_a_wrong_duration_is_refused(value: object) -> None:
    with dask.config.set({"daskdl.stall-timeout": value}), pytest.raises(SettingsError) as raised:
        seconds("stall-timeout")
    assert str(raised.value) == (
        "dask.config daskdl.stall-timeout: expected a duration such as '5 minutes', "
        f"found {value!r}; set it in Dask's configuration"
    )


@pytest.mark.parametrize("value", ["two", 0, -1, 1.5, True, None])
def test_a_wrong_number_is_refused(value: object) -> None:
    with (
        dask.config.set({"daskdl.attempts": value}),
        pytest.raises(SettingsError, match=r"daskdl\.attempts: expected a whole number .* found"),
    ):
        setting("attempts")
