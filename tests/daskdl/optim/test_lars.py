"""LARS against the paper's algorithm in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import LARS
from daskdl.optim.schedules import Exponential
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "momentum": st.just(0.0) | runs.betas,
        "weight_decay": runs.decays,
        "trust": st.floats(1e-3, 0.1),
        "vectors": st.booleans(),
    }
)


def paper(rate, momentum, weight_decay, trust, vectors):
    """Return the weights after the usual run of algorithm 1 of arXiv 1708.03888."""
    w = runs.start().astype(float)
    v = np.zeros_like(w)
    for t in range(runs.STEPS):
        g = runs.gradients(w, t)
        for here in (slice(0, 20), slice(20, 25), slice(25, 37)):
            x, d = w[here], g[here]
            local = trust * np.linalg.norm(x)
            local /= np.linalg.norm(d) + weight_decay * np.linalg.norm(x)
            local = 1 if here.start == 20 and not vectors else local
            v[here] = momentum * v[here] + rate * 0.9**t * local * (d + weight_decay * x)
        w = w - v
    return w


@runs.few
@given(rate=st.floats(0.1, 5), options=options, dtype=runs.dtypes)
def test_is_the_papers_algorithm(rate, options, dtype):
    if not options["vectors"]:
        rate /= 20  # a local rate of 1 is a long one
    method = LARS(Exponential(rate, 0.9), **options).on(runs.LAYOUT)
    found = runs.descend(method, dtype=np.dtype(dtype))
    runs.assert_close(found, paper(rate, **options))


def test_it_is_pure():
    runs.check_pure(LARS(0.1).on(runs.LAYOUT))


def test_a_norm_of_zero_has_a_local_rate_of_one():
    method = LARS(0.5, momentum=0).on(runs.LAYOUT)
    w, g = np.zeros((2, runs.SIZE), np.float32)
    g[:20] = 2
    w[25:] = 3
    new, _ = method.update(w, g, method.init(runs.SIZE), 0)
    np.testing.assert_array_equal(new[:20], -1)
    np.testing.assert_array_equal(new[20:], w[20:])


def test_a_gradient_that_is_not_a_number_shows_in_its_parameter():
    method = LARS(0.5).on(runs.LAYOUT)
    w, g = np.ones((2, runs.SIZE), np.float32)
    g[22] = np.nan
    new, _ = method.update(w, g, method.init(runs.SIZE), 0)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(new)), np.arange(20, 25))


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="LARS: expected 0 <= trust < inf, found -1"):
        LARS(trust=-1)
