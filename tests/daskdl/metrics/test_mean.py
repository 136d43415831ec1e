"""The mean of a user's own function."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import ShapeError
from daskdl.metrics import Mean
from daskdl.metrics import mean as module
from tests.daskdl.cuts import check_cuts


@given(data=st.data(), n=st.integers(1, 30))
def test_it_is_the_mean_for_any_cut(data, n):
    a, b = np.random.default_rng(n).normal(size=(2, n, 3)).astype("f4")
    found = check_cuts(Mean(lambda p, y: np.abs(p - y).max(1)), a, b, data)
    assert found == pytest.approx(np.abs(a - b).max(1).astype("f8").mean(), rel=1e-12)


def test_it_has_to_be_of_each_sample():
    with pytest.raises(
        ShapeError, match=r"Mean: expected mean to .* 4 samples, found float64 \(\)"
    ):
        Mean(mean)(np.zeros(4), np.zeros(4))


def mean(prediction, target):
    return np.mean(prediction - target)


def test_better_is_what_it_was_told():
    assert not Mean(np.subtract).higher_is_better
    assert Mean(np.subtract, higher_is_better=True).higher_is_better


def test_the_docstrings_example():
    assert doctest.testmod(module).failed == 0
