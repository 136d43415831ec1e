"""Passing: an evaluation is begun again when data were lost, and leaves nothing behind."""

from __future__ import annotations

import time

from distributed import Client
from distributed.comm import CommClosedError

from daskdl.data import SampleSet
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train.job import Tools, pack
from daskdl.train.passing import Passing
from daskdl.train.step import State
from tests.daskdl.train.partitions import Counted


def test_a_loss_is_made_good_and_nothing_stays(client: Client, monkeypatch) -> None:
    model = Linear(1, 1, seed=0)
    job = pack(Tools(model, MSELoss(), SGD(0.1)), seed=0, threads=1)
    engine = Passing(client, job, SampleSet([Counted(3, 0), Counted(4, 3)]))
    fetch, lost = engine._cluster.fetch, [CommClosedError("gone")]

    def once(futures):
        if lost:
            raise lost.pop()
        return fetch(futures)

    before = set(client.futures)
    monkeypatch.setattr(engine._cluster, "fetch", once)
    (loss,) = engine.evaluate(State(model.snapshot(), {}, 0), 2)
    assert loss > 0
    assert not lost
    limit = time.monotonic() + 60
    while not set(client.futures) <= before:  # by the client's event loop; of others, some may go
        assert time.monotonic() < limit
        time.sleep(0.01)
