"""Estimators as scikit-learn wants them; Classifier and Regressor."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from daskdl.errors import DataError, SettingsError
from daskdl.nn import Join, L1Loss, Linear, Sequential, Tanh
from daskdl.optim import SGD, Adam
from daskdl.sklearn import Classifier, Regressor
from daskdl.sklearn.arrays import array_of, computed, each, no_rows

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
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def problem(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(n, 2))
    return x, (x[:, 0] * x[:, 1] > 0).astype(int)


@pytest.mark.parametrize("place", ["X", "y", "sample_weight", "predict"])
@pytest.mark.parametrize("estimator", [Classifier((4,), **QUICK), Regressor((4,), **QUICK)])
def test_masked_elements_are_refused(estimator, place):
    x, y = problem()
    arrays = {"X": x, "y": y, "sample_weight": np.ones(60), "predict": x}
    arrays[place] = np.ma.masked_array(arrays[place], arrays[place] > 0)
    later = arrays.pop("predict")
    with pytest.raises(ValueError, match=r"contains NaN|expected no masked elements of int64"):
        estimator.fit(**arrays).predict(later)


@pytest.mark.parametrize(
    ("name", "advice"),
    [("learning_rate", "to the optimizer, such as SGD"), ("early_stopping", "EarlyStopping")],
)
def test_arguments_of_others_are_answered_with_advice(name, advice):
    with pytest.raises(SettingsError, match=rf"found {name}=.*{advice}"):
        Classifier(**{name: 0.1})


def test_it_works_in_pipelines_and_searches():
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


def test_the_same_random_state_is_the_same_network():
    x, y = problem()
    one = Classifier((4,), **QUICK).fit(x, y)
    other, third = clone(one).fit(x, y), clone(one).set_params(random_state=1).fit(x, y)
    assert np.array_equal(one.model_.flat, other.model_.flat)
    assert not np.array_equal(one.model_.flat, third.model_.flat)
    sent = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(sent.predict_proba(x), one.predict_proba(x))


def test_another_network_loss_and_length():
    x, y = problem()
    seen = []

    def network(features, outputs, seed):
        seen.append((features, outputs))
        return Sequential(Linear(features, 3, seed=seed), Tanh(), Linear(3, outputs, seed=seed))

    model = Regressor(model=network, loss=L1Loss(), epochs=3, batch_size=20).fit(x, y)
    assert seen == [(2, 1)]
    assert isinstance(model.model_.layers[1], Tanh)
    assert len(model.history_["loss"]) == 9
    expected = np.abs(y[:, np.newaxis] - model.model_.predict(x)).mean()
    assert model.history_["loss"][-1] == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("sizes", [(0,), (2.5,), 7])
def test_sizes_are_whole_numbers(sizes):
    with pytest.raises(SettingsError, match="Classifier, hidden_layer_sizes: expected whole num"):
        Classifier(sizes).fit(*problem())


class Counts(Linear):
    """Counts its calls in this process."""

    calls = 0

    def forward(self, x: Any) -> Any:
        Counts.calls += 1
        return super().forward(x)


def test_arrays_in_memory_are_fitted_here(current):
    x, y = problem()
    estimator = Classifier(model=lambda n, k, seed: Counts(n, k, seed=seed), **QUICK).fit(x, y)
    assert Counts.calls >= 2 * 6  # two batches an epoch; calls on workers count there
    assert len(estimator.history_["loss"]) == 2 * 6


X = np.random.default_rng(0).normal(size=(30, 4))
Y = np.where(X[:, 0] > 0, "right", "left")


def test_a_model_takes_several_arrays_one_by_one():
    def model(shapes, outputs, seed):
        assert shapes == ((1,), (3,))
        return Sequential(Join(), Linear(4, outputs, seed=seed))

    estimator = Classifier(model=model, optimizer=Adam(0.1), epochs=40, random_state=0).fit(
        (X[:, :1], X[:, 1:]), Y
    )
    assert estimator.score((X[:, :1], X[:, 1:]), Y) > 0.9


def test_several_arrays_without_a_model_are_refused():
    with pytest.raises(SettingsError, match="Classifier, model: expected one for X of several"):
        Classifier().fit((X[:, :1], X[:, 1:]), Y)


NAMES = np.array(["dry", "rain", "snow"])


def problem_of_names() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(90, 2))
    return x, NAMES[(x[:, 0] > 0).astype(int) + (x[:, 1] > 0)]


def classifier(**options: object) -> Classifier:
    return Classifier((8,), optimizer=Adam(0.02), epochs=20, random_state=0, **options)


def test_labels_are_the_users():
    x, y = problem_of_names()
    estimator = classifier().fit(x, y)
    assert list(estimator.classes_) == ["dry", "rain", "snow"]
    shares = estimator.predict_proba(x)
    assert shares.shape == (90, 3)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
    np.testing.assert_array_equal(estimator.predict(x), NAMES[shares.argmax(1)])
    assert estimator.score(x, y) == np.mean(estimator.predict(x) == y) > 0.9


@pytest.mark.slow
def test_weights_say_which_samples_count():
    x, y = problem_of_names()
    wrong = np.where(np.arange(90) < 45, y, "dry")
    weight = np.where(np.arange(90) < 45, 1.0, 0.0)
    assert classifier().fit(x, wrong, weight).score(x, y) > 0.9
    assert classifier().fit(x, wrong).score(x, y) < 0.9
    assert classifier().fit(x, y).score(x, wrong, weight) > 0.9


@pytest.mark.slow
def test_dask_collections_are_fitted_where_they_are(current):
    x, y = problem_of_names()
    lazy = da.from_array(x, chunks=(40, 2)), da.from_array(y, chunks=40)
    estimator = classifier().fit(*lazy)
    assert list(estimator.classes_) == ["dry", "rain", "snow"]
    labels, shares = estimator.predict(lazy[0]), estimator.predict_proba(lazy[0])
    assert labels.chunks == ((40, 40, 10),)
    assert shares.chunks == ((40, 40, 10), (3,))
    np.testing.assert_array_equal(labels.compute(), estimator.predict(x))
    np.testing.assert_allclose(shares.compute(), estimator.predict_proba(x), rtol=1e-5, atol=1e-7)
    assert estimator.score(*lazy) == estimator.score(x, y) > 0.9


@pytest.mark.slow
def test_dataframes_have_names(current):
    x, y = problem_of_names()
    table = pd.DataFrame(x, columns=["t", "q"]).convert_dtypes()  # which may be missing
    frame = dd.from_pandas(table.assign(y=y), npartitions=3)
    estimator = classifier().fit(frame[["t", "q"]], frame["y"])
    assert list(estimator.feature_names_in_) == ["t", "q"]
    assert estimator.predict(frame[["t", "q"]]).npartitions == 3
    assert estimator.score(frame[["t", "q"]], frame["y"]) > 0.9
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(frame[["q", "t"]])


INPUTS = np.random.default_rng(0).normal(size=(90, 2))
TARGETS = INPUTS @ [[1.0, -1.0], [0.5, 2.0]]


def regressor() -> Regressor:
    return Regressor((16,), optimizer=Adam(0.02), epochs=20, random_state=0)


@pytest.mark.parametrize("y", [TARGETS, TARGETS[:, 0]], ids=["two", "one"])
def test_predictions_have_the_shape_of_the_targets(y):
    estimator = regressor().fit(INPUTS, y)
    assert estimator.predict(INPUTS).shape == y.shape
    residual = ((y - estimator.predict(INPUTS)) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)
    assert estimator.score(INPUTS, y) == pytest.approx(1 - residual.mean())
    assert estimator.score(INPUTS, y) > 0.9


@pytest.mark.slow
def test_dask_arrays_are_fitted_where_they_are(current):
    y = TARGETS[:, 0]
    lazy = da.from_array(INPUTS, chunks=(40, 2)), da.from_array(y, chunks=40)
    weight = da.ones(90, chunks=40)
    estimator = regressor().fit(*lazy, weight)
    predictions = estimator.predict(lazy[0])
    assert predictions.chunks[0] == (40, 40, 10)
    assert predictions.shape == y.shape
    np.testing.assert_allclose(
        predictions.compute(), estimator.predict(INPUTS), rtol=1e-4, atol=1e-5
    )
    assert estimator.score(*lazy, weight) == pytest.approx(estimator.score(INPUTS, y), rel=1e-6)
    assert estimator.score(*lazy) > 0.9


@pytest.mark.parametrize("unit", ["datetime64[D]", "timedelta64[h]"])
def test_moments_and_spans_of_time_are_no_targets(unit):
    x, _ = problem()
    with pytest.raises(SettingsError, match="y: expected numbers, such as hours since a moment"):
        Regressor((4,), **QUICK).fit(x, np.arange(len(x)).astype(unit))


def test_without_scikit_learn_there_is_one_sentence():
    code = "import sys; sys.modules['sklearn'] = None; import daskdl.sklearn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip().splitlines()[-1] == (
        "daskdl.errors.MissingExtraError: daskdl.sklearn needs scikit-learn from 1.6 on, which is "
        "not installed: pip install 'daskdl[sklearn]'."
    )


ROWS = np.arange(12.0).reshape(6, 2)


def test_frames_are_arrays_with_the_same_partitions():
    lazy = dd.from_pandas(pd.DataFrame(ROWS, columns=["a", "b"]), npartitions=2)
    assert array_of(lazy).npartitions == 2
    np.testing.assert_array_equal(array_of(lazy).compute(), ROWS)
    labels = dd.from_pandas(pd.Series([1, 2], dtype="Int64"), npartitions=2)
    assert array_of(labels).compute().dtype == np.float64  # as scikit-learn makes of them in memory
    assert array_of(ROWS) is ROWS
    assert list(no_rows(lazy).columns) == ["a", "b"]
    assert no_rows(da.from_array(ROWS)).shape == (0, 2)
    with pytest.raises(DataError, match="found 1 axes"):
        no_rows(da.ones(3))


def test_each_chunk_goes_through_the_function():
    lazy = da.from_array(ROWS, chunks=(4, 2))
    classes = each(lambda x: x.argmax(1), lazy, drop_axis=1)
    assert (classes.chunks, classes.dtype) == (((4, 2),), np.int64)
    np.testing.assert_array_equal(classes.compute(), each(lambda x: x.argmax(1), ROWS))
    wide = each(lambda x: x[:, np.newaxis], lazy[:, 0], new_axis=1)
    assert wide.shape == (6, 1)


def test_only_what_is_lazy_is_computed():
    assert computed(ROWS, None)[0] is ROWS
    predicted = computed(da.from_array(ROWS), ROWS, None)
    assert [type(v) for v in predicted] == [np.ndarray, np.ndarray, type(None)]
