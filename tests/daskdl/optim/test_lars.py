"""Steps by the norms of each parameter: LARS and LAMB."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import LAMB, LARS, AdamW
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
        rate /= 20  # vectors have a local rate of 1, which is large
    method = LARS(Exponential(rate, 0.9), **options).on(runs.LAYOUT)
    weights = runs.descend(method, dtype=np.dtype(dtype))
    runs.assert_close(weights, paper(rate, **options))


def test_a_gradient_that_is_not_a_number_shows_in_its_parameter():
    method = LARS(0.5).on(runs.LAYOUT)
    w, g = np.ones((2, runs.SIZE), np.float32)
    g[22] = np.nan
    new, _ = method.update(w, g, method.init(runs.SIZE), 0)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(new)), np.arange(20, 25))


options_lamb = st.fixed_dictionaries(
    {
        "beta1": runs.betas,
        "beta2": runs.betas,
        "epsilon": runs.epsilons,
        "weight_decay": runs.decays,
        "most": st.sampled_from([1.0, 10.0, np.inf]),
    }
)


def paper_lamb(rate, beta1, beta2, epsilon, weight_decay, most):
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
@given(rate=runs.rates, options=options_lamb, dtype=runs.dtypes)
def test_is_the_papers_algorithm_lamb(rate, options, dtype):
    method = LAMB(rate, **options).on(runs.LAYOUT)
    runs.assert_close(runs.descend(method, dtype=np.dtype(dtype)), paper_lamb(rate, **options))


def test_vectors_without_a_ratio_step_as_by_adamw():
    options = {"epsilon": 1e-6, "weight_decay": 0.1}
    weights = runs.descend(LAMB(0.1, **options, vectors=False).on(runs.LAYOUT))
    expected = runs.descend(AdamW(0.1, **options))
    np.testing.assert_allclose(weights[20:25], expected[20:25], rtol=1e-5)
    assert not np.allclose(weights[:20], expected[:20], rtol=1e-3)


@pytest.mark.parametrize(
    ("method", "moved"), [(LARS(0.5, momentum=0), -1), (LAMB(0.5, weight_decay=0), -0.5)]
)
def test_a_norm_of_zero_has_a_ratio_of_one(method, moved):
    method = method.on(runs.LAYOUT)
    w, g = np.zeros((2, runs.SIZE), np.float32)
    g[:20], w[25:] = 2, 3
    new, _ = method.update(w, g, method.init(runs.SIZE), 0)
    np.testing.assert_allclose(new[:20], moved, rtol=1e-5)
    np.testing.assert_array_equal(new[20:], w[20:])


each = pytest.mark.parametrize("method", [LARS(0.1), LAMB(0.1)], ids=["LARS", "LAMB"])


@each
def test_a_method_without_a_layout_is_refused(method):
    w = runs.start()
    with pytest.raises(SettingsError, match=r"L\w+: expected on\(Layout\.of\(model\)\) before"):
        method.init(runs.SIZE)
    with pytest.raises(SettingsError, match=r"L\w+: expected on\(Layout\.of\(model\)\) before"):
        method.update(w, w, {"mean": w, "square": w, "velocity": w}, 0)
    with pytest.raises(SettingsError, match="of the 37 numbers of its layout, found 36"):
        method.on(runs.LAYOUT).init(36)


@each
def test_updates_are_pure_and_slices_step_alike(method):
    runs.check_pure(method.on(runs.LAYOUT))
    runs.check_joint_slices(method.on(runs.LAYOUT))
    assert not method.by_element


@each
def test_each_parameter_steps_by_itself(method):
    w, layout = runs.start(), runs.LAYOUT
    g = runs.gradients(w, 0)
    whole = method.on(layout)
    before, _ = whole.update(w, g, whole.init(runs.SIZE), 0)
    g[:20] *= 1 + np.linspace(0, 1, 20, dtype=np.float32)
    after, _ = whole.update(w, g, whole.init(runs.SIZE), 0)
    np.testing.assert_array_equal(before[20:], after[20:])


@each
def test_squares_are_summed_by_parameter(method):
    w = runs.start()
    squares = method.on(runs.LAYOUT).squares_of(w)
    expected = [(part.astype(float) ** 2).sum() for part in np.split(w, [20, 25])]
    np.testing.assert_allclose(squares, expected, rtol=1e-6)
