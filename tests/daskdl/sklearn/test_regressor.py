"""Regressor: one target or several, in memory and on Dask."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from daskdl.optim import Adam
from daskdl.sklearn import Regressor

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
