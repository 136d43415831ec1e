"""The trial of a fit with one sample, and labels that are no class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskdl.data import Ragged, SampleSet
from daskdl.errors import DataError, SettingsError, ShapeError, TrainingError
from daskdl.metrics import Accuracy, Mean
from daskdl.metrics.metric import Metric
from daskdl.nn import Buffer, CrossEntropyLoss, Linear, MSELoss, ReLU
from daskdl.optim import SGD
from daskdl.train import Trainer
from daskdl.train.fit.trial import check_sample
from tests.daskdl.train.jobs import new_job, raising, samples


def as_float(prediction: Any, target: Any) -> Any:
    return float(np.mean((prediction.data - target) ** 2))


def of_every_sample(prediction: Any, target: Any) -> Any:
    return prediction - target


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"loss": raising},
            TrainingError,
            "Linear: one sample .* ZeroDivisionError: a",
        ),
        ({"loss": as_float}, TrainingError, r"as_float: expected the loss .* number, found \d"),
        (
            {"loss": of_every_sample},
            TrainingError,
            r"of_every_sample: expected the loss .* number, found shape \(1, 2\)",
        ),
        ({"metrics": (Mean(raising),)}, TrainingError, "ZeroDivisionError"),
        ({"metrics": (Accuracy(),)}, ShapeError, "Accuracy: expected integer labels"),
        ({"model": Linear(4, 2)}, ShapeError, r"Linear.* 4"),
    ],
)
def test_a_mistake_shows_in_one_sample(options, kind, message):
    job, _ = new_job(**options)
    with pytest.raises(kind, match=message):
        check_sample(job, samples().take(np.arange(1)))


def test_a_model_of_arrays_gets_no_sequences_of_different_lengths():
    job, _ = new_job()
    batch = {"x": Ragged.of([np.ones((2, 3))]), "y": np.zeros(1, np.int64)}
    with pytest.raises(TrainingError, match=r"lengths; pad them, .*batch\['x'\]\.padded\(100\)}\)"):
        check_sample(job, batch)


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (np.zeros(4), r"float64 \(1,\);"),
        (np.zeros((4, 1), "i8"), r"int64 \(1, 1\);"),
        (np.full(4, np.nan), r"float64 \(1,\) with NaN;"),
    ],
)
def test_the_error_says_how_to_make_labels_of_numbers_and_columns(labels, text):
    samples = SampleSet.from_arrays(x=np.zeros((4, 3), np.float32), y=labels)
    advice = text + r" labels\.astype\(np.int64\) makes whole numbers, labels\[..., 0\] drops"
    with pytest.raises(ShapeError, match=advice):
        Trainer(Linear(3, 2), CrossEntropyLoss(), SGD(0.1)).fit(samples, epochs=1, client=False)


def test_samples_need_x_and_y():
    samples = SampleSet.from_arrays(x=np.zeros((4, 3), np.float32), rain=np.zeros(4))
    with pytest.raises(DataError, match=r"samples with x and y, found \['rain', 'x'\]"):
        Trainer(Linear(3, 2), MSELoss(), SGD(0.1)).fit(samples, epochs=1, progress=False)


class OffTheTape(Linear):
    def forward(self, x: Any) -> Any:
        return super().forward(x).data


def frozen() -> Linear:
    model = Linear(3, 2)
    model.freeze()
    return model


@pytest.mark.parametrize("model", [OffTheTape(3, 2), frozen(), ReLU()])
def test_a_loss_that_no_parameter_changes_is_refused(model):
    batch = samples().take(np.arange(1))
    batch["y"] = np.zeros_like(batch["x"]) if isinstance(model, ReLU) else batch["y"]
    job, _ = new_job(model=model)
    with pytest.raises(TrainingError, match="expected a loss that depends on parameters to train"):
        check_sample(job, batch)


class Limited(Linear):
    """Clips its weights in forward, which it must not."""

    def forward(self, x: Any) -> Any:
        np.clip(self.weight.data, -0.01, 0.01, out=self.weight.data)
        return super().forward(x)


def test_a_forward_that_changes_parameters_is_reported_and_undone(caplog):
    job, _ = new_job(model=Limited(3, 2, seed=4))
    job.tools().model.vector[:] = before = np.arange(8)
    check_sample(job, samples().take(np.arange(1)))
    assert "Limited: expected forward to leave parameters" in caplog.text
    assert "it changes weight; what it writes" in caplog.text
    np.testing.assert_array_equal(job.tools().model.vector, before)


class Replacing(Linear):
    """Makes a new buffer instead of writing into the old one."""

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.calls = Buffer(np.zeros(1, np.float32))

    def forward(self, x: Any) -> Any:
        self.calls = Buffer(self.calls.data + 1)
        return super().forward(x)


def test_a_forward_that_replaces_its_buffers_is_refused():
    job, _ = new_job(model=Replacing())
    with pytest.raises(TrainingError, match="Replacing: expected forward to keep the model's"):
        check_sample(job, samples().take(np.arange(1)))


def test_samples_of_objects_are_named():
    job, _ = new_job()
    batch = samples().take(np.arange(1))
    with pytest.raises(ShapeError, match=r"linear: expected x of numbers, found object \(1, 3\)"):
        check_sample(job, batch | {"x": batch["x"].astype(object)})


class Padding(Linear):
    """Reads ragged sequences."""

    def forward(self, x: Any) -> Any:
        rows = np.zeros((len(x), 3), np.float32)
        for row, sequence in zip(rows, x, strict=True):
            row[: len(sequence)] = sequence
        return super().forward(rows)


def test_a_model_may_read_ragged_samples():
    job, _ = new_job(model=Padding(3, 2))
    check_sample(job, {"x": Ragged.of([[0.5, 1.0]]), "y": np.zeros((1, 2), np.float32)})


class Unweighted(Metric):
    def statistics(self, prediction: Any, target: Any) -> Any:  # type: ignore[override]
        return {"n": np.asarray(len(target))}

    def value(self, statistics: Any) -> float:
        return float(statistics["n"])


class Unweighing:
    def __call__(self, prediction: Any, target: Any) -> Any:
        return MSELoss()(prediction, target)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"loss": Unweighing()}, "Unweighing"),
        ({"loss": of_every_sample}, "of_every_sample"),
        ({"metrics": (Unweighted(),)}, "Unweighted.statistics"),
    ],
)
def test_weights_that_a_loss_or_metric_ignores_are_refused(options, name):
    job, _ = new_job(**options)
    batch = samples().take(np.arange(1)) | {"sample_weight": np.ones(1)}
    with pytest.raises(SettingsError, match=rf"have sample_weight, expected {name} to take"):
        check_sample(job, batch)


def test_weights_have_to_be_one_for_each_sample():
    job, _ = new_job()
    batch = samples().take(np.arange(1)) | {"sample_weight": np.ones((1, 2))}
    with pytest.raises(ShapeError, match=r"sample_weight .* shape \(1,\), found float64 \(1, 2\)"):
        check_sample(job, batch)


def fit(y, loss=None, change=None, **options):
    samples = SampleSet.from_arrays(x=np.zeros((len(y), 4), "f4"), y=np.asarray(y), partitions=3)
    trainer = Trainer(Linear(4, 3, seed=0), loss or CrossEntropyLoss(), SGD(0.1))
    samples = samples if change is None else samples.map(change)
    trainer.fit(samples, epochs=1, progress=False, **options)
    return trainer


def labels(wrong=None):
    y = np.arange(12) % 3
    if wrong is not None:
        y[10] = wrong
    return y


IGNORES = CrossEntropyLoss(ignore_index=-1)


def evaluated():
    wrong = SampleSet.from_arrays(x=np.zeros((12, 4), "f4"), y=labels(9), partitions=3)
    fit(labels(-1), IGNORES).evaluate(wrong)


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        # Labels in memory are checked before any iteration.
        (lambda: fit(labels(3)), DataError, "0 to 2, as .* 3 outputs, found y = 3 in sample 10"),
        (lambda: fit(labels(-1)), DataError, "found y = -1 in sample 10"),
        (lambda: fit(labels(7), IGNORES), DataError, "found y = 7 in sample 10"),
        (lambda: fit(["cat", "dog"]), DataError, "words such as 'cat'; number the classes from 0"),
        # Sample 10 of twelve in three partitions is the third of the last.
        (
            lambda: fit(labels(9), change=dict, batch_size=12),
            TrainingError,
            "shard 2: .* to 2, found 9 in sample 2 of the partit",
        ),
        (evaluated, TrainingError, "validation, shard 2: .* found 9 in sample 2 of the p"),
    ],
)
def test_a_wrong_label_names_its_sample(run, error, message):
    with pytest.raises(error, match=message):
        run()


def test_a_batch_of_more_than_all_samples_is_reported_once(caplog):
    assert len(fit(labels(), batch_size=12).history) == 1
    assert not caplog.records
    assert len(fit(labels(), batch_size=13).history) == 1
    assert [r.message[:62] for r in caplog.records] == [
        "Trainer.fit: batch_size 13 is more than the 12 samples, so tha"
    ]
