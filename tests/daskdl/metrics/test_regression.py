"""Errors of numbers against scikit-learn, and the same bits for any cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs

from daskdl import metrics
from daskdl.errors import ShapeError
from tests.daskdl.cuts import check_cuts

PAIRS = [
    (metrics.MeanAbsoluteError(), theirs.mean_absolute_error),
    (metrics.MeanSquaredError(), theirs.mean_squared_error),
]


@pytest.mark.parametrize(("metric", "expected"), PAIRS)
@given(data=st.data(), n=st.integers(1, 30), dtype=st.sampled_from(["f4", "f8"]))
def test_any_cut_gives_scikit_learns_value(metric, expected, data, n, dtype):
    a, b = np.random.default_rng(n).lognormal(0, 3, (2, n, 3)).astype(dtype)
    found = check_cuts(metric, a, b, data)
    assert found == pytest.approx(expected(b.astype("f8"), a.astype("f8")), rel=1e-12)


@pytest.mark.parametrize(("metric", "expected"), PAIRS)
def test_missing_shows_and_nothing_is_nan(metric, expected):
    assert np.isnan(metric(np.array([1.0, np.nan]), np.ones(2)))
    assert np.isnan(metric(np.empty((0, 3)), np.empty((0, 3))))
    with pytest.raises(ShapeError, match=r"Error: .* shape \(3, 1\), found \(3,\)"):
        metric(np.zeros((3, 1)), np.zeros(3))
