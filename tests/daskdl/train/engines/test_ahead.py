"""The next batch is drawn while the current one is computed; validation sums over samples."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from daskdl.data import SampleSet
from daskdl.data.recipe import Arrays
from daskdl.errors import TrainingError
from daskdl.metrics import ROCAUC, MeanAbsoluteError
from daskdl.nn import L1Loss, Linear, Module, MSELoss, Sequential
from daskdl.optim import SGD
from daskdl.predict.evaluation import Evaluation, combined
from daskdl.train import Trainer
from daskdl.train.engines.job import Job, evaluate
from tests.daskdl.train.jobs import N, by_hand, new_job, samples

X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)

#: Drawn batches, and whether one was drawn ahead: global, since functions are copied.
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
            return counted(batch) if len(batch["x"]) == 6 else batch  # not the sample of the trial

    DRAWN.clear()
    SECOND.clear()
    fit(Counted(), Waits())
    assert len(DRAWN) == 8  # none is drawn twice, or in vain


def test_an_exception_ahead_names_its_iteration():
    def fails(batch, rng):
        if rng.random() < 0.3:
            raise LookupError("torn")
        return batch

    with pytest.raises(TrainingError, match=r"iteration \d+ \(epoch \d+\), shard 0: .*torn"):
        fit(fails, client=False)
    assert not [t for t in threading.enumerate() if t.name.startswith("daskdl-ahead")]


def weighed(data: Arrays, weight: np.ndarray) -> Arrays:
    return Arrays({**data.arrays, "sample_weight": weight})


def parts(job: Job, weights: Any, data: Arrays, shards: int, batch_size: int) -> list[Evaluation]:
    """Return the evaluations of shards of the samples."""
    bounds = np.linspace(0, len(data), shards + 1).astype(int)
    cut = (data.part(a, b) for a, b in pairwise(bounds))
    return [evaluate(job, weights, part, s, batch_size) for s, part in enumerate(cut)]


@pytest.mark.parametrize("batch_size", [1, 4, N, 100])
def test_an_evaluation_sums_over_samples(batch_size):
    job, model = new_job(metrics=(MeanAbsoluteError(),))
    result = evaluate(job, model.flat, samples(), 0, batch_size)
    arrays = samples().arrays
    expected, _ = by_hand(model, arrays["x"], arrays["y"])
    assert result.samples == N
    assert result.loss == pytest.approx(expected, rel=1e-6)
    loss, error = combined(job.tools(), [result])
    assert loss == pytest.approx(expected / N, rel=1e-6)
    assert error == pytest.approx(np.abs(model(arrays["x"]).data - arrays["y"]).mean(), rel=1e-6)
    assert type(error) is float  # it goes into the manifest of a checkpoint


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("weights", [False, True])
def test_metrics_are_of_all_samples_and_not_means_of_shards(shards, weights):
    job, model = new_job(loss=L1Loss(), metrics=(ROCAUC(), MeanAbsoluteError()))
    rng = np.random.default_rng(3)
    y, w = rng.integers(0, 2, (40, 2)).astype(np.float32), rng.lognormal(size=40)
    data = Arrays({"x": rng.normal(size=(40, 3)).astype(np.float32), "y": y})
    whole = weighed(data, w) if weights else data
    loss, area, error = combined(job.tools(), parts(job, model.flat, whole, shards, 7))
    scores, each = model(data.arrays["x"]).data, np.repeat(w if weights else np.ones(40), 2)
    expected = roc_auc_score(y.ravel(), scores.ravel(), sample_weight=each)
    assert area == pytest.approx(expected, rel=1e-9)
    assert (area, error) == tuple(combined(job.tools(), parts(job, model.flat, whole, 1, 40))[1:])
    errors = np.abs(scores - y).mean(1).astype(float)
    assert error == pytest.approx(np.average(errors, weights=w if weights else None), rel=1e-6)
    # A loss is divided by the number of samples, so that losses of shards add up.
    assert loss == pytest.approx((errors * (w if weights else 1)).mean(), rel=1e-6)


def test_a_shard_without_samples_counts_nothing():
    job, model = new_job(metrics=(ROCAUC(),), model=Sequential())
    data = Arrays({"x": np.float32([0.1, 0.9]), "y": np.float32([0, 1])})
    results = [evaluate(job, model.flat, part, 0, 4) for part in (data.part(0, 0), data)]
    assert results[0].samples == 0
    assert combined(job.tools(), results) == combined(job.tools(), results[1:])
    assert combined(job.tools(), results)[1] == 1.0


def test_validation_samples_pass_their_own_functions():
    def of_zero(batch):
        return {**batch, "y": 0 * batch["y"]}

    job, model = new_job(functions=(lambda batch: {},), validation_functions=(of_zero,))
    result = evaluate(job, model.flat, samples(), 0, 4)
    arrays = samples().arrays
    assert result.loss == pytest.approx(by_hand(model, arrays["x"], 0 * arrays["y"])[0], rel=1e-6)
