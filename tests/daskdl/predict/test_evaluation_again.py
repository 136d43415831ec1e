"""An evaluation is begun again when data were lost, and leaves nothing behind."""

from __future__ import annotations

import time

import pytest
from distributed import Client
from distributed.comm import CommClosedError

from daskdl.cluster.client import Cluster
from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.nn import Linear, MSELoss
from tests.daskdl.train.partitions import Counted


def test_a_loss_is_made_good_and_nothing_stays(client: Client, monkeypatch) -> None:
    model, samples = Linear(1, 1, seed=0), SampleSet([Counted(3, 0), Counted(4, 3)])
    alone = model.evaluate(samples, loss=MSELoss(), client=False)
    fetch, lost = Cluster.fetch, [CommClosedError("gone")]

    def once(self, futures):
        if lost:
            raise lost.pop()
        return fetch(self, futures)

    before = set(client.futures)
    monkeypatch.setattr(Cluster, "fetch", once)
    assert model.evaluate(samples, loss=MSELoss(), client=client) == alone
    assert not lost
    limit = time.monotonic() + 60
    while not set(client.futures) <= before:  # by the client's event loop; of others, some may go
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_what_cannot_be_sent_is_named(client: Client) -> None:
    class Locked:
        def __call__(self, prediction, target):
            return MSELoss()(prediction, target)

        def __reduce__(self):
            raise TypeError("cannot be pickled")

        def __deepcopy__(self, memo):
            return self

    model, samples = Linear(1, 1, seed=0), SampleSet([Counted(3, 0)])
    with pytest.raises(SettingsError, match="evaluate: expected loss that can be pickled and sent"):
        model.evaluate(samples, loss=Locked(), client=client)
    assert model.evaluate(samples, loss=Locked(), client=False)["loss"] >= 0
