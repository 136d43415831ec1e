"""The next batch is drawn while the current one is computed; what is drawn is the same."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import TrainingError
from daskdl.nn import Linear, Module, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer

X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)

#: Drawn batches, and that one was drawn ahead: of the process, as copies are all the same.
DRAWN: list[int] = []
SECOND = threading.Event()


class Waits(Module):
    """Does not go on in the second iteration before the third batch is drawn."""

    def __init__(self) -> None:
        self.linear = Linear(3, 1, seed=1)

    def forward(self, x):
        if len(DRAWN) == 2 and not SECOND.wait(20):
            raise RuntimeError("nobody draws ahead")
        return self.linear(x)


def jittered(batch, rng):
    return {**batch, "x": batch["x"] + rng.normal(size=batch["x"].shape)}


def counted(batch):
    if threading.current_thread().name.startswith("daskdl-ahead"):
        SECOND.set()
    DRAWN.append(len(batch["x"]))
    return batch


def fit(function, model=None, partitions=1, **options):
    samples = SampleSet.from_arrays(x=X, y=X[:, :1], partitions=partitions).map(function)
    trainer = Trainer(model or Linear(3, 1, seed=1), MSELoss(), SGD(0.1))
    trainer.fit(samples, epochs=2, batch_size=6, progress=False, **options)
    return trainer


def test_the_next_batch_is_drawn_while_one_is_computed():
    class Counted:
        def __call__(self, batch):
            return counted(batch) if len(batch["x"]) == 6 else batch  # not that of the trial

    DRAWN.clear()
    SECOND.clear()
    fit(Counted(), Waits())
    assert len(DRAWN) == 8  # none is drawn twice, or in vain


@pytest.mark.slow
def test_random_draws_are_the_same_in_every_engine(client):
    here = fit(jittered, partitions=2, client=False).model.flat
    for engine in ("graph", "gang"):  # of which the first draws nothing ahead
        there = fit(jittered, partitions=2, client=client, engine=engine).model.flat
        np.testing.assert_array_equal(there, here)


def test_an_exception_ahead_names_its_iteration():
    def fails(batch, rng):
        if rng.random() < 0.3:
            raise LookupError("torn")
        return batch

    with pytest.raises(TrainingError, match=r"iteration \d+ \(epoch \d+\), shard 0: .*torn"):
        fit(fails, client=False)
    assert not [t for t in threading.enumerate() if t.name.startswith("daskdl-ahead")]
