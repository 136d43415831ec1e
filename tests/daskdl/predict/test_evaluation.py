"""Evaluation: metrics of all samples together, for any partitions."""

from __future__ import annotations

import gc
import time
from itertools import pairwise

import numpy as np
import pytest
from distributed.comm import CommClosedError

from daskdl.cluster.client import Cluster
from daskdl.data import SampleSet
from daskdl.data.recipe import Arrays
from daskdl.errors import SettingsError
from daskdl.metrics import ROCAUC, MeanSquaredError
from daskdl.nn import Linear, MSELoss
from daskdl.predict.measures import plain, statistics_of
from tests.daskdl.predict.networks import by_hand, inputs, network
from tests.daskdl.train.jobs import Counted


def ragged() -> tuple[SampleSet, np.ndarray, np.ndarray]:
    x, y = inputs(), np.random.default_rng(1).integers(0, 2, (53, 2)).astype(np.float32)
    bounds = [0, 1, 30, 37, 53]
    parts = [Arrays({"x": x[a:b], "y": y[a:b]}) for a, b in pairwise(bounds)]
    return SampleSet(parts), x, y


def test_metrics_are_exact_over_ragged_partitions():
    samples, x, y = ragged()
    model = network()
    modes = [m.training for _, m in model.modules()]
    metrics = {"auc": ROCAUC(), "error": MeanSquaredError()}
    scores = model.evaluate(samples, metrics, batch_size=8)
    assert [m.training for _, m in model.modules()] == modes
    expected = by_hand(model, x)
    whole = model.evaluate(samples.repartition(1), metrics, batch_size=8)
    assert list(scores) == ["auc", "error"]
    assert scores["auc"] == pytest.approx(ROCAUC()(expected, y), rel=1e-9)
    assert scores["error"] == pytest.approx(np.mean((expected - y) ** 2), rel=1e-5)
    assert scores["auc"] == whole["auc"]


def test_a_loss_is_returned_where_it_is_asked_for():
    samples, x, y = ragged()
    model = network()
    scores = model.evaluate(samples, loss=MSELoss())
    assert scores == {"loss": pytest.approx(np.mean((by_hand(model, x) - y) ** 2), rel=1e-5)}
    assert model.evaluate(samples) == {}


def test_it_is_the_same_on_a_cluster(client):
    samples, _, _ = ragged()
    model, metrics = network(), [ROCAUC(), MeanSquaredError()]
    assert model.evaluate(samples, metrics, client=client) == model.evaluate(samples, metrics)


def test_other_objects_than_metrics_are_refused():
    with pytest.raises(SettingsError, match="expected a Metric"):
        network().evaluate(ragged()[0], ["accuracy"])


def test_a_lost_connection_is_made_good_and_no_future_stays(client, monkeypatch):
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
    while not set(client.futures) <= before:  # the client's event loop releases them
        assert time.monotonic() < limit
        gc.collect()  # frees what the exception refers to
        time.sleep(0.01)


def test_a_loss_that_cannot_be_sent_is_refused(client):
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


def test_statistics_are_the_same_after_transport():
    measured = (
        {"hits": np.arange(6).reshape(2, 3), "n": np.int64(7), "loss": np.float64(0.1)},
        {},
        {"names": np.array(["a", "bc"]), "none": np.zeros((0, 4), np.float32)},
    )
    restored = statistics_of(plain(measured))
    assert [list(names) for names in restored] == [["hits", "n", "loss"], [], ["names", "none"]]
    for before, after in zip(measured, restored, strict=True):
        for name in before:
            assert after[name].dtype == np.asarray(before[name]).dtype
            np.testing.assert_array_equal(after[name], before[name])


def test_objects_are_refused():
    with pytest.raises(SettingsError, match="found ids of object; encode it in numbers"):
        plain(({"ids": np.array([object()])},))
