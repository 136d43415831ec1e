"""Evaluation: metrics of all samples together, for any partitions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from distributed import Client

from daskdl.data import SampleSet
from daskdl.data.arrays import Arrays
from daskdl.errors import SettingsError
from daskdl.metrics import ROCAUC, MeanSquaredError
from daskdl.nn import MSELoss
from tests.daskdl.predict.networks import by_hand, inputs, network


def ragged() -> tuple[SampleSet, np.ndarray, np.ndarray]:
    x, y = inputs(), np.random.default_rng(1).integers(0, 2, (53, 2)).astype(np.float32)
    bounds = [0, 1, 30, 37, 53]
    parts = [Arrays({"x": x[a:b], "y": y[a:b]}) for a, b in pairwise(bounds)]
    return SampleSet(parts), x, y


def test_metrics_are_exact_over_ragged_partitions() -> None:
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


def test_a_loss_is_returned_where_it_is_asked_for() -> None:
    samples, x, y = ragged()
    model = network()
    found = model.evaluate(samples, loss=MSELoss())
    assert found == {"loss": pytest.approx(np.mean((by_hand(model, x) - y) ** 2), rel=1e-5)}
    assert model.evaluate(samples) == {}


def test_it_is_the_same_on_a_cluster(client: Client) -> None:
    samples, _, _ = ragged()
    model, metrics = network(), [ROCAUC(), MeanSquaredError()]
    assert model.evaluate(samples, metrics, client=client) == model.evaluate(samples, metrics)


def test_a_metric_has_to_be_one() -> None:
    with pytest.raises(SettingsError, match="expected a Metric"):
        network().evaluate(ragged()[0], ["accuracy"])
