"""Estimators of several arrays."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from daskdl.errors import SettingsError
from daskdl.nn import Join, Linear, Sequential
from daskdl.optim import Adam
from daskdl.sklearn import Classifier

X = np.random.default_rng(0).normal(size=(30, 4))
Y = np.where(X[:, 0] > 0, "right", "left")


def test_a_model_takes_them_one_by_one():
    def model(shapes, outputs, seed):
        assert shapes == ((1,), (3,))
        return Sequential(Join(), Linear(4, outputs, seed=seed))

    found = Classifier(model=model, optimizer=Adam(0.1), epochs=40, random_state=0).fit(
        (X[:, :1], X[:, 1:]), Y
    )
    assert found.score((X[:, :1], X[:, 1:]), Y) > 0.9


def test_without_a_model_that_is_told():
    with pytest.raises(SettingsError, match="Classifier, model: expected one for X of several"):
        Classifier().fit((X[:, :1], X[:, 1:]), Y)
