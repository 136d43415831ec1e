"""Streaming: memory of workers and client does not grow with the number of partitions."""

from __future__ import annotations

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from distributed import Client, get_worker
from distributed.sizeof import safe_sizeof

from daskdl.nn import Linear
from tests.daskdl.train.runs import die, first

CHUNK = 4 * 100_000  # bytes of the inputs of a partition


def block(block_id: tuple[int, ...]) -> np.ndarray:
    """Return the inputs of a partition, and note the bytes that the worker holds."""
    worker = get_worker()
    size = sum(map(safe_sizeof, list(worker.data.values())))
    worker.most_held = max(getattr(worker, "most_held", 0), size)
    return np.full((1000, 100), block_id[0], np.float32)


def most_held(dask_worker: object) -> int:
    return dask_worker.__dict__.pop("most_held", 0)


def run(client: Client, partitions: int) -> tuple[int, int, int]:
    """Return the most bytes of a worker, the bytes of the graph, and the number of futures."""
    inputs = da.map_blocks(
        block, chunks=((1000,) * partitions, (100,)), dtype=np.float32, meta=np.empty((0, 0), "f4")
    )
    model = Linear(100, 100, bias=False, seed=1)
    before = set(client.futures)
    result = model.predict(inputs)
    futures = len(set(client.futures) - before)
    total = result.sum().compute()
    expected = model.weight.data.sum(dtype=float) * 1000 * np.arange(partitions).sum()
    np.testing.assert_allclose(total, expected, rtol=1e-3)
    return max(client.run(most_held).values()), len(cloudpickle.dumps(result.dask)), futures


@pytest.mark.slow
def test_memory_does_not_grow_with_partitions(current):
    few, graph_of_few, futures_of_few = run(current, 8)
    many, graph_of_many, futures_of_many = run(current, 64)
    assert many < 8 * CHUNK
    assert many < few + 4 * CHUNK
    assert graph_of_many < graph_of_few + 10_000
    assert max(futures_of_few, futures_of_many) <= 1  # the model


def dying(block: np.ndarray, block_id: tuple[int, ...] = (0,), marker: str = "") -> np.ndarray:
    """Return a block; the first worker that computes the seventh is killed."""
    if block_id[0] == 6 and first(marker):
        die()
    return block


@pytest.mark.kills
def test_a_worker_that_dies_takes_nothing_with_it(current, tmp_path):
    x = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
    model = Linear(3, 2, seed=1)
    marker = str(tmp_path / "died")
    inputs = da.from_array(x, chunks=(2, 3)).map_blocks(dying, marker=marker, dtype=x.dtype)
    result = model.predict(inputs).compute()
    assert (tmp_path / "died").exists()
    np.testing.assert_allclose(result, model.predict(x), rtol=1e-5)
