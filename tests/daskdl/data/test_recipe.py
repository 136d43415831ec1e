"""A user's own source, which has a length and loads, does all that our sources do."""

from __future__ import annotations

import numpy as np
import pytest
from distributed import Client

from daskdl.data import Arrays, Partition, Recipe, SampleSet
from daskdl.errors import DataError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer
from tests.daskdl.data.epochs import epoch, everything


class Line(Recipe):
    """Points of a line, which a worker computes when it loads them."""

    def __init__(self, start, stop):
        self.start, self.stop = start, stop

    def __len__(self):
        return self.stop - self.start

    def load(self):
        x = np.arange(self.start, self.stop, dtype=np.float32)[:, None] / 64
        return Arrays({"x": x, "y": 2 * x})


class Backwards(Partition):
    """A user's partition: the numbers below n, the largest first."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def take(self, indices):
        return {"x": self.n - 1 - np.asarray(indices)}


class Countdown(Line):
    def load(self):
        return Backwards(len(self))


def line():
    return SampleSet([Line(0, 40), Line(40, 64)])


def weights(samples, **options):
    model = Linear(1, 1, seed=0)
    trainer = Trainer(model, MSELoss(), SGD(0.1), seed=1)
    trainer.fit(samples, epochs=2, batch_size=8, progress=False, **options)
    return model.flat.tolist()


@pytest.mark.slow
def test_it_trains_to_the_bits_of_arrays(client: Client):
    loaded = [recipe.load() for recipe in line().recipes]
    alone = weights(line())
    assert alone == weights(SampleSet(loaded))
    for engine in ("graph", "gang"):
        assert weights(line(), client=client, engine=engine) == alone


def test_it_is_cut_streamed_shuffled_filtered_and_checked():
    xs = (np.arange(64) / 64).tolist()
    assert everything(line().repartition(5))["x"][:, 0].tolist() == xs
    streamed = np.concatenate([batch["x"] for batch in epoch(line().stream(3, "64 B"), 9)])
    assert sorted(streamed[:, 0].tolist()) == xs
    mixed = everything(line().shuffle(1))["x"][:, 0].tolist()
    assert sorted(mixed) == xs != mixed
    halves = line().split([0.5, 0.5])
    assert [len(half) for half in halves] == [32, 32]
    assert len(line().filter(lambda batch: batch["x"][:, 0] < 0.25)) == 16
    assert len(line().check(shapes={"x": (1,)}, finite=True)) == 64
    with pytest.raises(DataError, match=r"x of shape \(1,\), not \(2,\)"):
        line().check(shapes={"x": (2,)}).map_batches(dict).recipes[0].load()
    assert (line().nbytes, line().bad) == (0, ())


def test_it_predicts(client: Client):
    model = Linear(1, 1, seed=0)
    x = np.arange(64, dtype=np.float32)[:, None] / 64
    with client.as_current():
        np.testing.assert_array_equal(np.asarray(model.predict(line())), model.predict(x))


def test_a_partition_of_ones_own_needs_a_length_and_samples():
    samples = SampleSet([Countdown(0, 3), Countdown(0, 2)])
    assert everything(samples)["x"].tolist() == [2, 1, 0, 1, 0]
    assert everything(samples.repartition(1).repartition(2))["x"].tolist() == [2, 1, 0, 1, 0]
    assert samples.recipes[0].load().nbytes == 3 * 8
    assert samples.recipes[0].load().pick(np.array([2])).take(np.arange(1))["x"].tolist() == [0]


def test_a_source_that_does_not_load_is_refused():
    class Empty(Recipe):
        def __len__(self):
            return 1

    with pytest.raises(TypeError, match="load"):
        Empty()
