"""A user's collective tasks on real workers: all ranks run or none, with the same bits."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from daskdl.collective import Communicator, run
from daskdl.errors import ClusterError, SettingsError, TrainingError
from tests.daskdl.train.runs import die, first

ROOT = Path(__file__).resolve().parents[3]
ClientOf = Callable[[int], Client]


def norms(comm: Communicator, parts: dict[int, Any], rounds: int, marker: str = "") -> Any:
    """Return sums whose bits show the order of additions; one rank may die on the way, once."""
    total = np.ones(3, np.float32)
    for i in range(rounds):
        if marker and comm.rank == 1 and i == rounds // 2 and first(marker):
            die()
        total = comm.all_reduce({s: np.tanh(x.sum(0) * total) for s, x in parts.items()})
    return total


@pytest.fixture(scope="module")
def blocks() -> list[Any]:
    array = da.random.default_rng(3).normal(size=(70, 3), chunks=(10, 3))
    return list(array.to_delayed().ravel())


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bits(client_of: ClientOf, blocks: list[Any]) -> None:
    (alone,) = run(client_of(1), norms, 5, shards=blocks)
    for workers in (2, 3):
        results = run(client_of(workers), norms, 5, shards=blocks)
        assert len(results) == workers
        for result in results:
            np.testing.assert_array_equal(result, alone)


@pytest.mark.kills
def test_a_killed_worker_changes_nothing(
    client_of: ClientOf, blocks: list[Any], tmp_path: Path
) -> None:
    client = client_of(3)
    expected = run(client, norms, 6, shards=blocks)[0]
    results = run(client, norms, 6, str(tmp_path / "died"), shards=blocks)
    assert (tmp_path / "died").exists()
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_a_rank_for_each_worker_by_default(client: Client) -> None:
    ranks = run(client, lambda comm: (comm.rank, comm.size, comm.shards))
    assert ranks == [(0, 2, [0]), (1, 2, [1])]


def test_shards_without_data(client: Client) -> None:
    results = run(client, lambda comm, k: (comm.shards, k), 7, shards=5)
    assert sorted(s for shards, _ in results for s in shards) == list(range(5))
    assert {k for _, k in results} == {7}


def fails(comm: Communicator) -> None:
    if comm.rank == 1:
        raise ZeroDivisionError("a mistake of the user's")
    comm.barrier()


@pytest.mark.slow
def test_an_error_names_rank_and_worker_and_ends_all(client: Client) -> None:
    expected = r"rank 1 at worker tcp://\S+: ZeroDivisionError: a mistake"
    with pytest.raises(TrainingError, match=expected):
        run(client, fails)
    assert run(client, lambda comm: comm.all_reduce(np.ones(1))[0]) == [2.0, 2.0]


def fails_while_another_works(comm: Communicator) -> None:
    if comm.rank == 0:
        raise ZeroDivisionError("a mistake")
    time.sleep(4)


@pytest.mark.slow
def test_the_error_of_one_rank_is_raised_while_another_still_works(client: Client) -> None:
    with (
        dask.config.set({"daskdl.peer-timeout": "500 ms"}),
        pytest.raises(TrainingError, match=r"rank 0 .*a mistake"),
    ):
        run(client, fails_while_another_works)


def waits(comm: Communicator) -> None:
    if comm.rank == 1:
        while True:
            time.sleep(0.01)
    comm.barrier()


@pytest.mark.kills
@pytest.mark.long
def test_a_worker_that_takes_too_long_is_named(client_of: ClientOf) -> None:
    client = client_of(2)
    with pytest.raises(ClusterError, match=r"within 10 s, found worker \S+ \(shard 1\) still at"):
        run(client, waits, timeout=10)
    client.restart_workers(list(client.scheduler_info(n_workers=-1)["workers"]), timeout=60)


def test_no_shards_are_refused(client: Client) -> None:
    with pytest.raises(SettingsError, match="expected at least 1, found 0; leave it out"):
        run(client, fails, shards=0)
    with pytest.raises(SettingsError, match="data of at least one shard, found none"):
        run(client, fails, shards=[])


@pytest.mark.long
def test_the_example_finds_the_centres() -> None:
    command = [sys.executable, str(ROOT / "examples" / "kmeans.py"), "--clusters", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    for line in done.stdout.splitlines():
        true, centre = (np.fromstring(t.strip(" []"), sep=" ") for t in line.split("found at"))
        np.testing.assert_allclose(centre, true, atol=0.1)
    assert len(done.stdout.splitlines()) == 3
