"""What is hardly meant, in a model's last layer, its loss and its metrics, is said once a fit."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.metrics import ROCAUC, Accuracy, BinaryAccuracy
from daskdl.nn import (
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Linear,
    LogSoftmax,
    NLLLoss,
    Sequential,
    Sigmoid,
    Softmax,
)
from daskdl.optim import SGD
from daskdl.train import Trainer

X = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)


def said(caplog, loss, *layers, metrics=(), classes=3):
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
def test_it_is_said_once(caplog, loss, layers, metrics, classes, sentence):
    if isinstance(metrics, list) and isinstance(metrics[0], ROCAUC):
        layers = (Sigmoid(),)  # from 0 to 1, but what the loss takes for logits
    found = said(caplog, loss, *layers, metrics=metrics, classes=classes)
    assert len(found) == 1
    assert sentence in found[0]


@pytest.mark.parametrize(
    ("loss", "layers", "metrics", "classes"),
    [
        (NLLLoss(), (LogSoftmax(),), [Accuracy()], 3),
        (CrossEntropyLoss(), (), [Accuracy()], 3),
        (CrossEntropyLoss(), (LogSoftmax(),), (), 3),
        (BCEWithLogitsLoss(), (), [BinaryAccuracy(0.0), ROCAUC()], 2),
    ],
)
def test_what_goes_together_is_not_spoken_of(caplog, loss, layers, metrics, classes):
    assert said(caplog, loss, *layers, metrics=metrics, classes=classes) == []
