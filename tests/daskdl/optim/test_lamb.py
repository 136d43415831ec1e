"""LAMB against the paper's algorithm in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import LAMB, AdamW
from tests.daskdl.optim import runs

options = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "most": st.sampled_from([1.0, 10.0, np.inf]),
    }
)


def paper(rate, beta1, beta2, epsilon, weight_decay, most):
    """Return the weights after the usual run of algorithm 2 of arXiv 1904.00962."""
    w = runs.start().astype(float)
    m, v = np.zeros((2, *w.shape))
    for t in range(runs.STEPS):
        g = runs.gradients(w, t)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        r = m / (1 - beta1 ** (t + 1)) / (np.sqrt(v / (1 - beta2 ** (t + 1))) + epsilon)
        u = r + weight_decay * w
        new = w.copy()
        for here in (slice(0, 20), slice(20, 25), slice(25, 37)):
            phi = min(np.linalg.norm(w[here]), most)
            new[here] -= rate * phi / np.linalg.norm(u[here]) * u[here]
        w = new
    return w


@runs.few
@given(rate=runs.rates, options=options, dtype=runs.dtypes)
def test_is_the_papers_algorithm(rate, options, dtype):
    method = LAMB(rate, **options).on(runs.LAYOUT)
    runs.assert_close(runs.descend(method, dtype=np.dtype(dtype)), paper(rate, **options))


def test_it_is_pure():
    runs.check_pure(LAMB(0.1).on(runs.LAYOUT))


def test_vectors_without_a_ratio_step_as_by_adamw():
    options = {"epsilon": 1e-6, "weight_decay": 0.1}
    found = runs.descend(LAMB(0.1, **options, vectors=False).on(runs.LAYOUT))
    expected = runs.descend(AdamW(0.1, **options))
    np.testing.assert_allclose(found[20:25], expected[20:25], rtol=1e-5)
    assert not np.allclose(found[:20], expected[:20], rtol=1e-3)


def test_a_norm_of_zero_has_a_ratio_of_one():
    method = LAMB(0.5, weight_decay=0).on(runs.LAYOUT)
    w, g = np.zeros((2, runs.SIZE), np.float32)
    g[:20], w[25:] = 2, 3
    new, _ = method.update(w, g, method.init(runs.SIZE), 0)
    np.testing.assert_allclose(new[:20], -0.5, rtol=1e-5)
    np.testing.assert_array_equal(new[20:], w[20:])


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match=r"LAMB: expected 0 <= beta1 < 1, found 1\.0"):
        LAMB(beta1=1.0)
