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
    found = model.evaluate(samples, metrics, batch_size=8)
    assert [m.training for _, m in model.modules()] == modes
    expected = by_hand(model, x)
    whole = model.evaluate(samples.repartition(1), metrics, batch_size=8)
    assert list(found) == ["auc", "error"]
    assert found["auc"] == pytest.approx(ROCAUC()(expected, y), rel=1e-9)
    assert found["error"] == pytest.approx(np.mean((expected - y) ** 2), rel=1e-5)
    assert found["auc"] == whole["auc"]


def test_a_loss_is_returned_where_it_is_asked_for():
    samples, x, y = ragged()
    model = network()
    found = model.evaluate(samples, loss=MSELoss())
    assert found == {"loss": pytest.approx(np.mean((by_hand(model, x) - y) ** 2), rel=1e-5)}
    assert model.evaluate(samples) == {}


def test_it_is_the_same_on_a_cluster(client):
    samples, _, _ = ragged()
    model, metrics = network(), [ROCAUC(), MeanSquaredError()]
    assert model.evaluate(samples, metrics, client=client) == model.evaluate(samples, metrics)


def test_a_metric_has_to_be_one():
    with pytest.raises(SettingsError, match="expected a Metric"):
        network().evaluate(ragged()[0], ["accuracy"])


def test_a_loss_is_made_good_and_nothing_stays(client, monkeypatch):
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
        gc.collect()  # what an exception holds is let go with it
        time.sleep(0.01)


def test_what_cannot_be_sent_is_named(client):
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


def test_statistics_are_the_same_after_the_way():
    measured = (
        {"hits": np.arange(6).reshape(2, 3), "n": np.int64(7), "loss": np.float64(0.1)},
        {},
        {"names": np.array(["a", "bc"]), "none": np.zeros((0, 4), np.float32)},
    )
    found = statistics_of(plain(measured))
    assert [list(one) for one in found] == [["hits", "n", "loss"], [], ["names", "none"]]
    for before, after in zip(measured, found, strict=True):
        for name in before:
            assert after[name].dtype == np.asarray(before[name]).dtype
            np.testing.assert_array_equal(after[name], before[name])


def test_objects_are_refused():
    with pytest.raises(SettingsError, match="found ids of object; encode it in numbers"):
        plain(({"ids": np.array([object()])},))
