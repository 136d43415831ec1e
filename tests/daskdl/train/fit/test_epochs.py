"""Epochs on a cluster: every sample once, whoever draws it, also when a worker is killed."""

from __future__ import annotations

import os
import signal
from itertools import pairwise

import dask.bag as db
import numpy as np
import pytest

from daskdl.cluster.client import Cluster
from daskdl.data import SampleSet
from daskdl.data.on_workers.shards import Shards
from daskdl.nn import Linear
from daskdl.optim import SGD
from daskdl.train import Trainer
from daskdl.train.watch.callbacks import Callback
from tests.daskdl.train.partitions import Counted

N = 37


def one_hot(batch):
    """Return samples of which each has a weight of its own."""
    x = np.eye(N, dtype=np.float32)[batch["id"]]
    return {"x": x, "y": np.zeros((len(x), 1), np.float32)}


def mean(prediction, target):
    return (prediction - target).mean()


def seen(samples, batch_size, epochs=1, **options):
    """Return how often each sample was used, out of the weights of a model without a bias.

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


class Kill(Callback):
    """Kills a worker after the first group of iterations."""

    def __init__(self, client):
        self.client, self.killed = client, 0

    def on_group_end(self, trainer, iteration):
        if not self.killed:
            self.killed = self.client.run(os.getpid)[min(self.client.nthreads())]
            os.kill(self.killed, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["gang", "graph"])
def test_every_sample_once_whatever_the_workers(client_of, engine, short_groups):
    counts = {}
    for workers in (1, 2):
        client = client_of(workers)
        bag = db.from_sequence(range(N), npartitions=5)
        samples = SampleSet.from_bag(bag, lambda i: {"id": i}).shuffle(2)
        counts[workers] = seen(samples, 8, client=client, engine=engine)
        np.testing.assert_allclose(np.sort(counts[workers]), expected(8), rtol=1e-6)
    assert counts[1].tobytes() == counts[2].tobytes()


def streams():
    """Return three streams of blocks that every worker can read."""
    bounds = [N * i // 9 for i in range(10)]
    blocks = SampleSet([Counted(b - a, a) for a, b in pairwise(bounds)])
    return blocks.map_batches(lambda batch: {"id": batch["x"][:, 0].astype(int)}).stream(3)


def held():
    """Return samples that are sent to the workers."""
    return SampleSet.from_arrays(id=np.arange(N), partitions=4).filter(lambda b: b["id"] >= 0)


@pytest.mark.kills
@pytest.mark.parametrize(
    ("samples", "shuffle"), [(held, "global"), (held, "local"), (streams, "global")]
)
def test_every_sample_once_although_a_worker_is_killed(client, samples, shuffle, short_groups):
    options = {"client": client, "engine": "gang", "shuffle": shuffle}
    calm = seen(samples(), 5, **options)
    np.testing.assert_allclose(np.sort(calm), expected(5), rtol=1e-6)
    kill = Kill(client)
    hit = seen(samples(), 5, callbacks=[kill], **options)
    assert kill.killed
    assert hit.tobytes() == calm.tobytes()


def test_pooled_streams_go_on_where_they_were(tmp_path, short_groups):
    straight = seen(streams(), 5, epochs=3, client=False)
    options = {"epochs": 3, "client": False, "checkpoint": tmp_path, "checkpoint_every": 1}
    with pytest.raises(RuntimeError, match="in the second epoch"):
        seen(streams(), 5, callbacks=[Stopped()], **options)
    assert seen(streams(), 5, **options).tobytes() == straight.tobytes()


class Stopped(Callback):
    """Ends a run in the second epoch, in whose middle a checkpoint has been written."""

    def on_group_end(self, trainer, iteration):
        if iteration == 12:
            raise RuntimeError("in the second epoch")


@pytest.mark.slow
def test_what_lies_on_the_workers_is_used_there(client):
    first, second = sorted(client.nthreads())
    lie = [second, first, first, second]
    parts = np.array_split(np.arange(N), 4)
    futures = [
        client.scatter([{"id": part}], workers=[address], direct=True)[0]
        for part, address in zip(parts, lie, strict=True)
    ]
    samples = SampleSet.from_delayed(futures, lengths=[len(part) for part in parts])
    cluster = Cluster(client)
    shards = Shards(cluster, "epochs", samples)
    assert shards.placed(cluster.workers("test")).addresses == lie
    shards.wait("test")
    held = client.who_has(futures)
    assert [set(held[f.key]) for f in futures] == [{address} for address in lie]  # none was copied
    np.testing.assert_allclose(np.sort(seen(samples, N, client=client)), 1, rtol=1e-6)
    kept = samples.shuffle(1).persist(client)
    assert f"{N} samples in 4 partitions" in repr(kept)
    assert " at tcp://" in repr(kept)
    assert " at tcp://" in kept._repr_html_()
