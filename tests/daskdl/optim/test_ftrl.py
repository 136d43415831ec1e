"""Ftrl against the paper's algorithm in float64, and that slices can be stepped by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import Ftrl
from daskdl.optim.schedules import Polynomial
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "beta": st.floats(0, 2),
        "l1": st.just(0.0) | st.floats(0.01, 2),
        "l2": runs.decays,
        "initial": st.sampled_from([0.25, 1.0]),
    }
)


def paper(alpha, beta, l1, l2, initial):
    """Return the weights after the usual run of algorithm 1 of McMahan et al., one by one."""
    w = runs.start().astype(float)
    z, n = np.zeros_like(w), np.full_like(w, initial)
    for t in range(runs.STEPS):
        g = runs.gradients(w, t)
        for i in range(len(w)):
            sigma = ((n[i] + g[i] ** 2) ** 0.5 - n[i] ** 0.5) / alpha
            z[i] += g[i] - sigma * w[i]
            n[i] += g[i] ** 2
            if abs(z[i]) <= l1:
                w[i] = 0
            else:
                w[i] = -(((beta + n[i] ** 0.5) / alpha + l2) ** -1) * (z[i] - np.sign(z[i]) * l1)
    return w


@runs.few
@given(rate=st.floats(0.01, 0.5), options=options, dtype=runs.dtypes)
def test_is_the_papers_algorithm(rate, options, dtype):
    found = runs.descend(Ftrl(rate, **options), dtype=np.dtype(dtype))
    expected = paper(rate, **options)
    if dtype == "f8":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    else:  # a threshold may be passed in one and not in the other
        np.testing.assert_allclose(found, expected, atol=1e-3)


@runs.few
@given(options=options, decay=runs.decays, points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(options, decay, points):
    method = Ftrl(0.1, weight_decay=decay, **options)
    runs.check_pure(method)
    runs.check_slices(method, points)


def test_weights_that_nothing_pulls_are_exactly_zero():
    method = Ftrl(0.5, l1=1.0)
    g = np.array([0.5, -0.5, 3.0, np.nan], np.float32)
    w, _ = method.update(np.zeros(4, np.float32), g, method.init(4), 0)
    np.testing.assert_array_equal(w[:2], 0)
    assert w[2] < 0
    assert np.isnan(w[3])


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="Ftrl: expected 0 <= l1 < inf, found -1"):
        Ftrl(l1=-1)
    with pytest.raises(SettingsError, match="Ftrl: expected learning_rate > 0, found 0"):
        Ftrl(0)
    falling, w = Ftrl(Polynomial(0.1, over=2)), np.ones(2, np.float32)
    with pytest.raises(SettingsError, match=r"a learning rate > 0 in iteration 2, found 0\.0"):
        falling.update(w, w, falling.init(2), 2)
