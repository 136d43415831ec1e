"""Trainer.evaluate: exact over ragged partitions, of which few are alive at a time."""

from __future__ import annotations

from itertools import accumulate, pairwise

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from daskdl.data import SampleSet
from daskdl.errors import TrainingError
from daskdl.kernels.runtime.threads import available_cores
from daskdl.metrics import MeanSquaredError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer
from tests.daskdl.train.partitions import Counted, counted, most_alive

LENGTHS = [1, 7, 3, 0, 12, 5] * 4
TRAINER = Trainer(Linear(1, 1, seed=1), MSELoss(), SGD(0.1), metrics=[MeanSquaredError()])


def lazy() -> SampleSet:
    bounds = accumulate(LENGTHS, initial=0)
    return SampleSet([Counted(b - a, a) for a, b in pairwise(bounds)])


def in_memory() -> dict[str, float]:
    x = np.arange(sum(LENGTHS), dtype=np.float32)[:, None]
    return TRAINER.evaluate(SampleSet.from_arrays(x=x, y=x % 3), client=False)


def test_one_partition_is_held_for_each_thread_at_work() -> None:
    most_alive()
    found = TRAINER.evaluate(lazy(), threads=available_cores(), client=False)
    assert most_alive() == 1
    assert found == pytest.approx(in_memory(), rel=1e-5)


def made(block_id: tuple[int, int]) -> np.ndarray:
    return counted(np.full((10, 1), block_id[0], np.float32))


def test_chunks_of_dask_are_let_go_of_too() -> None:
    x = da.map_blocks(
        made, chunks=((10,) * 24, (1,)), dtype=np.float32, meta=np.empty((0, 0), "f4")
    )
    most_alive()
    TRAINER.evaluate(SampleSet.from_arrays(x=x, y=x % 3), threads=available_cores(), client=False)
    assert most_alive() <= 3


def test_workers_hold_one_partition_each(client: Client) -> None:
    client.run(most_alive)
    found = TRAINER.evaluate(lazy(), client=client)
    assert found == TRAINER.evaluate(lazy(), client=False)
    most = client.run(most_alive).values()
    assert max(most) <= 2
    assert sum(most) > 0  # it was done there


def test_samples_in_memory_are_measured_on_the_workers(client: Client) -> None:
    x = np.arange(20, dtype=np.float32)[:, None]
    samples = SampleSet.from_arrays(x=x, y=x, partitions=3)
    assert TRAINER.evaluate(samples, client=client) == TRAINER.evaluate(samples, client=False)
    held = samples.persist(client)
    assert TRAINER.evaluate(held, client=client) == TRAINER.evaluate(samples, client=False)


class Lost(Counted):
    """Recipe of what cannot be read."""

    def load(self):
        raise OSError("gone")


def test_what_cannot_be_loaded_is_named() -> None:
    samples = SampleSet([Counted(3, 0), Lost(2, 3)])
    with pytest.raises(TrainingError, match="shard 1: its samples cannot be loaded: OSError: gone"):
        TRAINER.evaluate(samples, client=False)
