"""Epochs on a cluster: every sample is drawn once, also if a worker is killed."""

from __future__ import annotations

import os
import signal
from itertools import accumulate, pairwise

import dask.array as da
import dask.bag as db
import numpy as np
import pytest
import xarray as xr

from daskdl.cluster.client import Cluster
from daskdl.data import SampleSet
from daskdl.data.on_workers.shards import Shards
from daskdl.errors import TrainingError
from daskdl.kernels.runtime.threads import available_cores
from daskdl.metrics import MeanSquaredError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer
from tests.daskdl.train.jobs import Counted, counted, most_alive
from tests.daskdl.train.runs import Do, failing, pids

N = 37


def one_hot(batch):
    """Return samples that have one weight of the model each."""
    x = np.eye(N, dtype=np.float32)[batch["id"]]
    return {"x": x, "y": np.zeros((len(x), 1), np.float32)}


def mean(prediction, target):
    return (prediction - target).mean()


def seen(samples, batch_size, epochs=1, **options):
    """Return how often each sample was used, from the weights of a model without a bias.

    The gradient of the mean of a batch is 1 / its size at the weights of its samples, and 0 at all
    others; with a step of the batch size a weight falls by 1 for each time its sample is drawn, and
    by more in the last batch, which is smaller.
    """
    model = Linear(N, 1, bias=False)
    model.load_vector(np.zeros(N, np.float32))
    trainer = Trainer(model, mean, SGD(float(batch_size)), seed=5)
    trainer.fit(
        samples.map(one_hot), epochs=epochs, batch_size=batch_size, progress=False, **options
    )
    return -model.flat.copy()


def expected(batch_size):
    """Return the sorted counts of an epoch in which every sample is drawn once."""
    last = N % batch_size
    return [1.0] * (N - last) + [batch_size / last] * last if last else [1.0] * N


@pytest.mark.slow
def test_every_sample_once_on_any_workers(client, short_groups):
    counts = []
    for where in (False, client):
        bag = db.from_sequence(range(N), npartitions=5)
        samples = SampleSet.from_bag(bag, lambda i: {"id": i}).shuffle(2)
        counts.append(seen(samples, 8, client=where, engine="graph"))  # gangs are below
        np.testing.assert_allclose(np.sort(counts[-1]), expected(8), rtol=1e-6)
    assert counts[0].tobytes() == counts[1].tobytes()


def streams(folder=None):
    """Return three streams of blocks that every worker can read."""
    bounds = [N * i // 9 for i in range(10)]
    blocks = SampleSet([Counted(b - a, a) for a, b in pairwise(bounds)])
    return blocks.map_batches(lambda batch: {"id": batch["x"][:, 0].astype(int)}).stream(3)


def frames(folder):
    """Return frames of a store, which every worker reads."""
    data = xr.Dataset({"id": (("time", "i"), np.arange(N)[:, None])}).chunk(time=1)
    data.to_zarr(folder / "frames.zarr", mode="w", consolidated=False)
    samples = SampleSet.from_xarray(
        folder / "frames.zarr", dim="time", x="id", y="id", partitions=3
    )
    return samples.map_batches(lambda batch: {"id": batch["x"][:, 0].astype(int)})


def sent(folder):
    """Return samples that are sent to the workers."""
    return SampleSet.from_arrays(id=np.arange(N), partitions=4).filter(lambda b: b["id"] >= 0)


@pytest.mark.kills
@pytest.mark.parametrize(
    ("samples", "shuffle"),
    [(sent, "global"), (sent, "local"), (streams, "global"), (frames, "global")],
)
def test_every_sample_once_although_a_worker_is_killed(
    client, tmp_path, samples, shuffle, short_groups
):
    options = {"client": client, "engine": "gang", "shuffle": shuffle}
    calm = seen(samples(tmp_path), 5, **options)
    np.testing.assert_allclose(np.sort(calm), expected(5), rtol=1e-6)
    kill = Do(1, lambda: os.kill(pids(client)[0], signal.SIGKILL))
    hit = seen(samples(tmp_path), 5, callbacks=[kill], **options)
    assert kill.done
    assert hit.tobytes() == calm.tobytes()


def test_pooled_streams_go_on_where_they_were(tmp_path, short_groups):
    straight = seen(streams(), 5, epochs=3, client=False)
    options = {"epochs": 3, "client": False, "checkpoint": tmp_path, "checkpoint_every": 1}
    stop = Do(12, failing(MemoryError))  # in the second epoch, after a checkpoint
    with pytest.raises(MemoryError):
        seen(streams(), 5, callbacks=[stop], **options)
    assert seen(streams(), 5, **options).tobytes() == straight.tobytes()


@pytest.mark.slow
def test_samples_on_the_workers_are_used_there(client):
    first, second = sorted(client.nthreads())
    addresses = [second, first, first, second]
    parts = np.array_split(np.arange(N), 4)
    futures = [
        client.scatter([{"id": part}], workers=[address], direct=True)[0]
        for part, address in zip(parts, addresses, strict=True)
    ]
    samples = SampleSet.from_delayed(futures, lengths=[len(part) for part in parts])
    cluster = Cluster(client)
    shards = Shards(cluster, "epochs", samples)
    assert shards.placed(cluster.workers("test")).addresses == addresses
    shards.wait("test")
    holders = client.who_has(futures)
    assert [set(holders[f.key]) for f in futures] == [{a} for a in addresses]  # none was copied
    np.testing.assert_allclose(np.sort(seen(samples, N, client=client)), 1, rtol=1e-6)
    stored = samples.shuffle(1).persist(client)
    assert f"{N} samples in 4 partitions" in repr(stored)
    assert " at tcp://" in repr(stored)
    assert " at tcp://" in stored._repr_html_()


LENGTHS = [1, 7, 3, 0, 12, 5] * 4
TRAINER = Trainer(Linear(1, 1, seed=1), MSELoss(), SGD(0.1), metrics=[MeanSquaredError()])


def lazy() -> SampleSet:
    bounds = accumulate(LENGTHS, initial=0)
    return SampleSet([Counted(b - a, a) for a, b in pairwise(bounds)])


def in_memory() -> dict[str, float]:
    x = np.arange(sum(LENGTHS), dtype=np.float32)[:, None]
    return TRAINER.evaluate(SampleSet.from_arrays(x=x, y=x % 3), client=False)


def test_one_partition_is_held_for_each_thread_at_work():
    most_alive()
    scores = TRAINER.evaluate(lazy(), threads=available_cores(), client=False)
    assert most_alive() == 1
    assert scores == pytest.approx(in_memory(), rel=1e-5)


def made(block_id: tuple[int, int]) -> np.ndarray:
    return counted(np.full((10, 1), block_id[0], np.float32))


def test_chunks_of_dask_are_released_too():
    x = da.map_blocks(
        made, chunks=((10,) * 24, (1,)), dtype=np.float32, meta=np.empty((0, 0), "f4")
    )
    most_alive()
    TRAINER.evaluate(SampleSet.from_arrays(x=x, y=x % 3), threads=available_cores(), client=False)
    assert most_alive() <= 3


def test_workers_hold_one_partition_each(client):
    client.run(most_alive)
    scores = TRAINER.evaluate(lazy(), client=client)
    assert scores == TRAINER.evaluate(lazy(), client=False)
    most = client.run(most_alive).values()
    assert max(most) <= 2
    assert sum(most) > 0  # it was done there


def test_samples_in_memory_are_measured_on_the_workers(client):
    x = np.arange(20, dtype=np.float32)[:, None]
    samples = SampleSet.from_arrays(x=x, y=x, partitions=3)
    assert TRAINER.evaluate(samples, client=client) == TRAINER.evaluate(samples, client=False)
    stored = samples.persist(client)
    assert TRAINER.evaluate(stored, client=client) == TRAINER.evaluate(samples, client=False)


class Lost(Counted):
    """Recipe of samples that cannot be read."""

    def load(self):
        raise OSError("gone")


def test_samples_that_cannot_be_loaded_are_named(client):
    samples, message = SampleSet([Counted(3, 0), Lost(2, 3)]), "its samples cannot be loaded: OSErr"
    with pytest.raises(TrainingError, match=f"shard 1: {message}"):
        TRAINER.evaluate(samples, client=False)
    with pytest.raises(TrainingError, match=f"shard 1 at worker tcp.*: {message}"):
        TRAINER.fit(samples, epochs=1, client=client, engine="graph", progress=False)
