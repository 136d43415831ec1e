"""Validations: sums over samples, weights, and metrics of all samples together."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from daskdl.data.arrays import Arrays
from daskdl.metrics import ROCAUC, MeanAbsoluteError
from daskdl.nn import L1Loss, Sequential
from daskdl.predict.evaluation import Evaluation, combined
from daskdl.train.engines.evaluation import evaluate
from daskdl.train.engines.job import Job
from tests.daskdl.train.jobs import N, by_hand, new_job, samples


def weighed(held: Arrays, weight: np.ndarray) -> Arrays:
    return Arrays({**held.arrays, "sample_weight": weight})


def parts(job: Job, weights: Any, held: Arrays, shards: int, batch_size: int) -> list[Evaluation]:
    """Return what shards of the samples come to."""
    bounds = np.linspace(0, len(held), shards + 1).astype(int)
    cut = (held.part(a, b) for a, b in pairwise(bounds))
    return [evaluate(job, weights, part, s, batch_size) for s, part in enumerate(cut)]


@pytest.mark.parametrize("batch_size", [1, 4, N, 100])
def test_an_evaluation_sums_over_samples(batch_size: int) -> None:
    job, model = new_job(metrics=(MeanAbsoluteError(),))
    found = evaluate(job, model.flat, samples(), 0, batch_size)
    held = samples().arrays
    expected, _ = by_hand(model, held["x"], held["y"])
    assert found.samples == N
    assert found.loss == pytest.approx(expected, rel=1e-6)
    loss, error = combined(job.tools(), [found])
    assert loss == pytest.approx(expected / N, rel=1e-6)
    assert error == pytest.approx(np.abs(model(held["x"]).data - held["y"]).mean(), rel=1e-6)
    assert type(error) is float  # it goes into the manifest of a checkpoint


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("weights", [False, True])
def test_metrics_are_of_all_samples_and_not_means_of_shards(shards: int, weights: bool) -> None:
    job, model = new_job(loss=L1Loss(), metrics=(ROCAUC(), MeanAbsoluteError()))
    rng = np.random.default_rng(3)
    y, w = rng.integers(0, 2, (40, 2)).astype(np.float32), rng.lognormal(size=40)
    held = Arrays({"x": rng.normal(size=(40, 3)).astype(np.float32), "y": y})
    whole = weighed(held, w) if weights else held
    loss, area, error = combined(job.tools(), parts(job, model.flat, whole, shards, 7))
    scores, each = model(held.arrays["x"]).data, np.repeat(w if weights else np.ones(40), 2)
    expected = roc_auc_score(y.ravel(), scores.ravel(), sample_weight=each)
    assert area == pytest.approx(expected, rel=1e-9)
    assert (area, error) == tuple(combined(job.tools(), parts(job, model.flat, whole, 1, 40))[1:])
    errors = np.abs(scores - y).mean(1).astype(float)
    assert error == pytest.approx(np.average(errors, weights=w if weights else None), rel=1e-6)
    # A loss is divided by the samples: only so do shards' losses add up.
    assert loss == pytest.approx((errors * (w if weights else 1)).mean(), rel=1e-6)


def test_a_shard_without_samples_counts_nothing() -> None:
    job, model = new_job(metrics=(ROCAUC(),), model=Sequential())
    held = Arrays({"x": np.float32([0.1, 0.9]), "y": np.float32([0, 1])})
    found = [evaluate(job, model.flat, part, 0, 4) for part in (held.part(0, 0), held)]
    assert found[0].samples == 0
    assert combined(job.tools(), found) == combined(job.tools(), found[1:])
    assert combined(job.tools(), found)[1] == 1.0


def test_dask_is_told_the_bytes() -> None:
    job, model = new_job(metrics=(ROCAUC(),), model=Sequential())
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    found = evaluate(job, model.flat, Arrays({"x": x, "y": np.round(x)}), 0, 100)
    assert sys.getsizeof(found) >= 24 * 1000


def test_validation_samples_pass_their_own_functions() -> None:
    job, model = new_job(functions=(nothing_left,), validation_functions=(targets_of_zero,))
    found = evaluate(job, model.flat, samples(), 0, 4)
    held = samples().arrays
    assert found.loss == pytest.approx(by_hand(model, held["x"], 0 * held["y"])[0], rel=1e-6)


def nothing_left(batch: dict[str, Any]) -> dict[str, Any]:
    return {}


def targets_of_zero(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "y": 0 * batch["y"]}
