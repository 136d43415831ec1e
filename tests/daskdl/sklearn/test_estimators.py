"""Classifier and Regressor, and their bases."""

from __future__ import annotations

import subprocess
import sys

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

from daskdl.errors import DataError
from daskdl.optim import Adam
from daskdl.sklearn import Classifier, Regressor
from daskdl.sklearn.classifier import softmax
from daskdl.sklearn.lazily import array_of, computed, each, is_lazy, no_rows

NAMES = np.array(["dry", "rain", "snow"])


def problem() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(90, 2))
    return x, NAMES[(x[:, 0] > 0).astype(int) + (x[:, 1] > 0)]


def classifier(**options: object) -> Classifier:
    return Classifier((8,), optimizer=Adam(0.02), epochs=20, random_state=0, **options)


def test_labels_are_the_users() -> None:
    x, y = problem()
    found = classifier().fit(x, y)
    assert list(found.classes_) == ["dry", "rain", "snow"]
    shares = found.predict_proba(x)
    assert shares.shape == (90, 3)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-6)
    np.testing.assert_array_equal(found.predict(x), NAMES[shares.argmax(1)])
    assert found.score(x, y) == np.mean(found.predict(x) == y) > 0.9


@pytest.mark.slow
def test_weights_say_which_samples_count() -> None:
    x, y = problem()
    wrong = np.where(np.arange(90) < 45, y, "dry")
    weight = np.where(np.arange(90) < 45, 1.0, 0.0)
    assert classifier().fit(x, wrong, weight).score(x, y) > 0.9
    assert classifier().fit(x, wrong).score(x, y) < 0.9
    assert classifier().fit(x, y).score(x, wrong, weight) > 0.9


@pytest.mark.slow
def test_dask_collections_are_fitted_where_they_are(current: Client) -> None:
    x, y = problem()
    lazy = da.from_array(x, chunks=(40, 2)), da.from_array(y, chunks=40)
    found = classifier().fit(*lazy)
    assert list(found.classes_) == ["dry", "rain", "snow"]
    labels, shares = found.predict(lazy[0]), found.predict_proba(lazy[0])
    assert labels.chunks == ((40, 40, 10),)
    assert shares.chunks == ((40, 40, 10), (3,))
    np.testing.assert_array_equal(labels.compute(), found.predict(x))
    np.testing.assert_allclose(shares.compute(), found.predict_proba(x), rtol=1e-5, atol=1e-7)
    assert found.score(*lazy) == found.score(x, y) > 0.9


@pytest.mark.slow
def test_dataframes_have_names(current: Client) -> None:
    x, y = problem()
    frame = dd.from_pandas(pd.DataFrame(x, columns=["t", "q"]).assign(y=y), npartitions=3)
    found = classifier().fit(frame[["t", "q"]], frame["y"])
    assert list(found.feature_names_in_) == ["t", "q"]
    assert found.predict(frame[["t", "q"]]).npartitions == 3
    assert found.score(frame[["t", "q"]], frame["y"]) > 0.9
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame[["q", "t"]])


def test_softmax_of_huge_scores_and_of_none() -> None:
    np.testing.assert_allclose(softmax(np.array([[1e4, 0.0]])), [[1, 0]])
    assert softmax(np.zeros((0, 2), np.float32)).dtype == np.float32


X = np.random.default_rng(0).normal(size=(90, 2))
Y = X @ [[1.0, -1.0], [0.5, 2.0]]


def regressor() -> Regressor:
    return Regressor((16,), optimizer=Adam(0.02), epochs=20, random_state=0)


@pytest.mark.parametrize("y", [Y, Y[:, 0]], ids=["two", "one"])
def test_predictions_have_the_shape_of_the_targets(y: np.ndarray) -> None:
    found = regressor().fit(X, y)
    assert found.predict(X).shape == y.shape
    residual = ((y - found.predict(X)) ** 2).sum(0) / ((y - y.mean(0)) ** 2).sum(0)
    assert found.score(X, y) == pytest.approx(1 - residual.mean())
    assert found.score(X, y) > 0.9


@pytest.mark.slow
def test_dask_arrays_are_fitted_where_they_are(current: Client) -> None:
    y = Y[:, 0]
    lazy = da.from_array(X, chunks=(40, 2)), da.from_array(y, chunks=40)
    weight = da.ones(90, chunks=40)
    found = regressor().fit(*lazy, weight)
    predictions = found.predict(lazy[0])
    assert predictions.chunks[0] == (40, 40, 10)
    assert predictions.shape == y.shape
    np.testing.assert_allclose(predictions.compute(), found.predict(X), rtol=1e-4, atol=1e-5)
    assert found.score(*lazy, weight) == pytest.approx(found.score(X, y), rel=1e-6)
    assert found.score(*lazy) > 0.9


def test_without_scikit_learn_there_is_one_sentence() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import daskdl.sklearn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip().splitlines()[-1] == (
        "daskdl.errors.MissingExtraError: daskdl.sklearn needs scikit-learn from 1.6 on, which is "
        "not installed: pip install 'daskdl[sklearn]'."
    )


X_LAZILY = np.arange(12.0).reshape(6, 2)


def test_what_is_lazy() -> None:
    frame = pd.DataFrame(X_LAZILY, columns=["a", "b"])
    lazy = dd.from_pandas(frame, npartitions=2)
    assert [is_lazy(v) for v in (X_LAZILY, frame, da.from_array(X_LAZILY), lazy, lazy["a"])] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert array_of(lazy).npartitions == 2
    np.testing.assert_array_equal(array_of(lazy).compute(), X_LAZILY)
    assert array_of(X_LAZILY) is X_LAZILY
    assert list(no_rows(lazy).columns) == ["a", "b"]
    assert no_rows(da.from_array(X_LAZILY)).shape == (0, 2)
    with pytest.raises(DataError, match="found 1 axes"):
        no_rows(da.ones(3))


def test_each_chunk_goes_through_the_function() -> None:
    lazy = da.from_array(X_LAZILY, chunks=(4, 2))
    found = each(lambda x: x.argmax(1), lazy, drop_axis=1)
    assert (found.chunks, found.dtype) == (((4, 2),), np.int64)
    np.testing.assert_array_equal(found.compute(), each(lambda x: x.argmax(1), X_LAZILY))
    wide = each(lambda x: x[:, np.newaxis], lazy[:, 0], new_axis=1)
    assert wide.shape == (6, 1)


def test_only_what_is_lazy_is_computed() -> None:
    assert computed(X_LAZILY, None)[0] is X_LAZILY
    found = computed(da.from_array(X_LAZILY), X_LAZILY, None)
    assert [type(v) for v in found] == [np.ndarray, np.ndarray, type(None)]
