"""Estimators as scikit-learn wants them: its own checks, pipelines, searches, clones."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from distributed import Client
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskdl.errors import SettingsError
from daskdl.nn import L1Loss, Linear, Sequential, Tanh
from daskdl.optim import SGD, Adam
from daskdl.sklearn import Classifier, Regressor
from daskdl.sklearn.estimator import Estimator

BATCHES = "a weight of two counts in one batch, the same row twice in one or two"
FAILING = {
    "Classifier": {"check_sample_weight_equivalence_on_dense_data": BATCHES},
    "Regressor": {
        "check_sample_weight_equivalence_on_dense_data": BATCHES,
        "check_regressor_multioutput": "predictions are float32, in which networks compute",
    },
}
QUICK = {"optimizer": Adam(5e-2), "epochs": 6, "random_state": 0}


@parametrize_with_checks(
    [Classifier((8,), **QUICK), Regressor((8,), **QUICK)],
    expected_failed_checks=lambda estimator: FAILING[type(estimator).__name__],
)
def test_scikit_learns_own_checks(estimator: Estimator, check: Any) -> None:
    check(estimator)


def problem(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(n, 2))
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


def test_it_works_in_pipelines_and_searches() -> None:
    x, y = problem()
    pipe = make_pipeline(StandardScaler(), Classifier(epochs=30, random_state=0))
    grid = {
        "classifier__optimizer": [SGD(1e-6), Adam(0.02)],
        "classifier__hidden_layer_sizes": [(16,)],
    }
    search = GridSearchCV(pipe, grid, cv=2).fit(100 * x, y)
    assert search.best_params_["classifier__optimizer"] == Adam(0.02)
    assert search.best_score_ > 0.7
    assert search.score(100 * x, y) > 0.9


def test_the_same_random_state_is_the_same_network() -> None:
    x, y = problem()
    one = Classifier((4,), **QUICK).fit(x, y)
    other, third = clone(one).fit(x, y), clone(one).set_params(random_state=1).fit(x, y)
    assert np.array_equal(one.model_.flat, other.model_.flat)
    assert not np.array_equal(one.model_.flat, third.model_.flat)
    sent = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(sent.predict_proba(x), one.predict_proba(x))


def test_another_network_loss_and_length() -> None:
    x, y = problem()
    seen = []

    def network(features: int, outputs: int, seed: int) -> Sequential:
        seen.append((features, outputs))
        return Sequential(Linear(features, 3, seed=seed), Tanh(), Linear(3, outputs, seed=seed))

    model = Regressor(model=network, loss=L1Loss(), epochs=3, batch_size=20).fit(x, y)
    assert seen == [(2, 1)]
    assert isinstance(model.model_.layers[1], Tanh)
    assert len(model.history_["loss"]) == 9
    expected = np.abs(y[:, np.newaxis] - model.model_.predict(x)).mean()
    assert model.history_["loss"][-1] == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("sizes", [(0,), (2.5,), 7])
def test_sizes_are_whole_numbers(sizes: Any) -> None:
    with pytest.raises(SettingsError, match="Classifier, hidden_layer_sizes: expected whole num"):
        Classifier(sizes).fit(*problem())


class Counts(Linear):
    """Counts its calls in this process."""

    calls = 0

    def forward(self, x: Any) -> Any:
        Counts.calls += 1
        return super().forward(x)


def test_arrays_in_memory_are_fitted_here(current: Client) -> None:
    x, y = problem()
    found = Classifier(model=lambda n, k, seed: Counts(n, k, seed=seed), **QUICK).fit(x, y)
    assert Counts.calls >= 2 * 6  # batches of each epoch; a cluster's are counted there
    assert len(found.history_["loss"]) == 2 * 6
