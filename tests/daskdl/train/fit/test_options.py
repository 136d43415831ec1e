"""Arguments of a fit, and warnings of likely mistakes."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import DaskdlError, SettingsError
from daskdl.metrics import (
    F1,
    ROCAUC,
    Accuracy,
    BinaryAccuracy,
    Mean,
    MeanAbsoluteError,
    TopKAccuracy,
)
from daskdl.nn import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Linear,
    LogSoftmax,
    MSELoss,
    NLLLoss,
    Sequential,
    Sigmoid,
    Softmax,
)
from daskdl.optim import SGD
from daskdl.predict.arguments import metrics_by_name
from daskdl.train import EarlyStopping, Trainer
from daskdl.train.watch.history import COLUMNS, EPOCH
from tests.daskdl.train.runs import network, problem


def named(metrics: Any) -> Any:
    """Return metrics by name, as a Trainer names them."""
    return metrics_by_name("Trainer", metrics, (*COLUMNS, *EPOCH))


def mae(prediction: Any, target: Any) -> float:
    return float(np.abs(prediction - target).mean())


MAKING = [
    (lambda: Trainer(3, MSELoss(), SGD(0.1)), "Trainer, model: expected a Module .*, found 3"),
    (lambda: Trainer(network(), "mse", SGD(0.1)), "loss: expected a loss such as .*, found 'mse'"),
    (lambda: Trainer(network(), MSELoss, SGD(0.1)), r"such as daskdl.nn.MSELoss\(\), found <class"),
    (lambda: Trainer(network(), MSELoss(), "adam"), "a Method .* such as Adam.*, found 'adam'"),
    (lambda: Trainer(network(), MSELoss(), SGD(0.1), seed=-1), "seed: .* at least 0, found -1"),
    (lambda: Trainer(network(), MSELoss(), SGD(0.1), seed=1.5), "seed: .* at least 0, found 1.5"),
    (
        lambda: named("auc"),
        "metrics: expected a list .* or a dict .*, found 'auc'",
    ),
    (
        lambda: named(ROCAUC()),
        r"metrics: expected a list .*, found ROCAUC\(bins=None\)",
    ),
    (
        lambda: named([ROCAUC(), mae]),
        r"metrics\[1\]: expected a Metric .*Mean\(function\).*, found <function mae",
    ),
    (
        lambda: named({"mae": mae}),
        r"metrics\['mae'\]: expected a Metric",
    ),
    (
        lambda: named([ROCAUC]),
        r"metrics\[0\]: .*ROCAUC\(\); .*, found <class",
    ),
    (
        lambda: named([TopKAccuracy(2), TopKAccuracy(3)]),
        r"differ .*, found \['top_k_accuracy', 'top_k_accuracy'\]; give a dict",
    ),
    (lambda: named({"loss": ROCAUC()}), "from 'loss' and the other"),
    (lambda: named({"seconds": ROCAUC()}), "from 'loss' and the other"),
]

FITTING = [
    ({}, "either epochs or iterations, found epochs=None and iterations=None"),
    ({"epochs": 1, "iterations": 1}, "either epochs or iterations, found epochs=1 and iter.*=1"),
    ({"epochs": 0}, "epochs: expected a whole number of at least 1, found 0"),
    ({"epochs": -2}, "epochs: expected .* found -2"),
    ({"epochs": 2.5}, "epochs: expected .* found 2.5"),
    ({"epochs": True}, "epochs: expected .* found True"),
    ({"iterations": -3}, "iterations: expected a whole number of at least 1, found -3"),
    ({"epochs": 1, "batch_size": 0}, "batch_size: expected a whole number .* found 0"),
    ({"epochs": 1, "batch_size": 2.5}, "batch_size: expected a whole number .* found 2.5"),
    ({"epochs": 1, "shards": 0}, "shards: expected a whole number of at least 1, found 0"),
    ({"epochs": 1, "checkpoint_every": 0}, "checkpoint_every: expected a whole number"),
    ({"epochs": 1, "threads": "two"}, "threads: expected a whole number .* found 'two'"),
    ({"epochs": 1, "wire": "f8"}, "wire: expected one of float32, bfloat16, found 'f8'"),
    ({"epochs": 1, "engine": "horse"}, "engine: expected one of auto, graph, gang, found 'horse'"),
    ({"epochs": 1, "validation": (1, 2)}, r"validation: expected a SampleSet, .*, found \(1, 2\)"),
    ({"epochs": 1, "callbacks": EarlyStopping()}, "callbacks: expected a list .* found <daskdl"),
    ({"epochs": 1, "callbacks": [EarlyStopping]}, r"callbacks\[0\]: .* made with \(\), found <cl"),
    ({"epochs": 1, "callbacks": [print]}, r"callbacks\[0\]: expected a Callback, found <built-in"),
    (
        {"epochs": 1, "client": "tcp://a:1"},
        "expected a distributed.Client, found 'tcp.*connect",
    ),
]


@pytest.mark.parametrize(("made", "message"), MAKING)
def test_wrong_parts_of_a_trainer_are_refused(made, message):
    with pytest.raises(SettingsError, match=message) as raised:
        made()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("options", "message"), FITTING)
def test_wrong_options_of_a_fit_are_refused(options, message):
    trainer = Trainer(network(), MSELoss(), SGD(0.1))
    with pytest.raises(SettingsError, match=message) as raised:
        trainer.fit(problem(), progress=False, **options)
    assert "\n" not in str(raised.value)
    assert len(trainer.history) == 0


def test_other_objects_than_samples_are_refused():
    trainer = Trainer(network(), MSELoss(), SGD(0.1))
    with pytest.raises(SettingsError, match=r"fit: expected a SampleSet, .*_arrays.* found \(ar"):
        trainer.fit((np.zeros(3), np.zeros(3)), epochs=1)
    with pytest.raises(SettingsError, match=r"evaluate: expected a SampleSet, .* found None"):
        trainer.evaluate(None)
    with pytest.raises(SettingsError, match=r"batch_size: expected a whole number .* found -1"):
        trainer.evaluate(problem(), batch_size=-1)


def test_metrics_need_samples_to_compute_them_on():
    trainer = Trainer(network(), MSELoss(), SGD(0.1), metrics=[MeanAbsoluteError()])
    with pytest.raises(SettingsError, match=r"to compute \['mean_absolute_error'\] on, found none"):
        trainer.fit(problem(), epochs=1, training_metrics=False)


def test_metrics_of_another_kind_of_target_are_refused_before_the_first_iteration():
    trainer = Trainer(network(), MSELoss(), SGD(0.1), metrics=[Accuracy()])
    with pytest.raises(DaskdlError, match="Accuracy: expected integer labels"):
        trainer.fit(problem(), epochs=1, validation=problem(1), progress=False)
    assert len(trainer.history) == 0


def test_metrics_are_named_by_their_classes_or_by_the_user():
    listed = [ROCAUC(), MeanAbsoluteError(), TopKAccuracy(2), F1(3), Mean(np.subtract)]
    names = ["rocauc", "mean_absolute_error", "top_k_accuracy", "f1", "mean"]
    assert named(listed) == dict(zip(names, listed, strict=True))
    by_name = {"top2": TopKAccuracy(2), "top3": TopKAccuracy(3)}
    assert named(by_name) == by_name


X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)


def warnings_of(caplog, loss, *layers, metrics=(), classes=3):
    y = np.arange(12) % classes
    if classes == 2:
        y = y[:, None].astype(np.float32)
    model = Sequential(Linear(4, classes if classes > 2 else 1, seed=0), *layers)
    with caplog.at_level(logging.WARNING):
        Trainer(model, loss, SGD(0.1), metrics=metrics).fit(
            SampleSet.from_arrays(x=X, y=y), epochs=3, batch_size=4, progress=False
        )
    return [r.getMessage() for r in caplog.records if "expected" in r.getMessage()]


@pytest.mark.parametrize(
    ("loss", "layers", "metrics", "classes", "sentence"),
    [
        (NLLLoss(), (), (), 3, "NLLLoss: expected logarithms of probabilities"),
        (CrossEntropyLoss(), (Softmax(),), (), 3, "CrossEntropyLoss: expected logits, found prob"),
        (BCEWithLogitsLoss(), (), [BinaryAccuracy()], 2, r"'binary_accuracy': expected probabili"),
        (BCEWithLogitsLoss(), (), [ROCAUC(bins=9)], 2, r"'rocauc': expected probabilities, for it"),
    ],
)
def test_a_likely_mistake_is_reported_once(caplog, loss, layers, metrics, classes, sentence):
    if isinstance(metrics, list) and isinstance(metrics[0], ROCAUC):
        layers = (Sigmoid(),)  # from 0 to 1, but the loss takes them for logits
    warnings = warnings_of(caplog, loss, *layers, metrics=metrics, classes=classes)
    assert len(warnings) == 1
    assert sentence in warnings[0]


@pytest.mark.parametrize(
    ("loss", "layers", "metrics", "classes"),
    [
        (NLLLoss(), (LogSoftmax(),), [Accuracy()], 3),
        (CrossEntropyLoss(), (), [Accuracy()], 3),
        (CrossEntropyLoss(), (LogSoftmax(),), (), 3),
        (BCEWithLogitsLoss(), (), [BinaryAccuracy(0.0), ROCAUC()], 2),
    ],
)
def test_parts_that_fit_together_give_no_warning(caplog, loss, layers, metrics, classes):
    assert warnings_of(caplog, loss, *layers, metrics=metrics, classes=classes) == []
