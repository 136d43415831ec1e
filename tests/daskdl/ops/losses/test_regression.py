"""Losses of numbers and distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import SettingsError, ShapeError
from daskdl.ops import losses
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss, check_slopes

SHAPES = hnp.array_shapes(max_dims=4, max_side=4)
DTYPES = st.sampled_from(["f4", "f8"])
BOTH = (True, True)


@given(shape=SHAPES, dtype=DTYPES)
def test_squared_and_absolute_error(shape, dtype, torch):
    a, b = normal(*shape), normal(*shape, seed=1)
    functions = torch.nn.functional
    for ours, theirs in (
        (losses.squared_error, functions.mse_loss),
        (losses.absolute_error, functions.l1_loss),
    ):
        check_loss(
            torch, ours, lambda x, y, f=theirs: f(x, y, reduction="none"), a, b,
            wanted=BOTH, dtype=dtype,
        )  # fmt: skip


@given(shape=SHAPES, dtype=DTYPES, width=st.sampled_from([0.1, 1.0, 2.5]))
def test_huber_and_smooth_l1(shape, dtype, width, torch):
    a, b = 2 * normal(*shape), normal(*shape, seed=1)
    functions = torch.nn.functional
    check_loss(
        torch,
        lambda *x, **k: losses.huber(*x, delta=width, **k),
        lambda x, y: functions.huber_loss(x, y, reduction="none", delta=width),
        a, b, wanted=BOTH, dtype=dtype,
    )  # fmt: skip
    for beta in (width, 0.0):
        check_loss(
            torch,
            lambda *x, beta=beta, **k: losses.smooth_l1(*x, beta=beta, **k),
            lambda x, y, beta=beta: functions.smooth_l1_loss(x, y, reduction="none", beta=beta),
            a, b, wanted=BOTH, dtype=dtype,
        )  # fmt: skip


@given(shape=SHAPES)
def test_relative_and_logarithmic_errors(shape):
    a, b = normal(*shape), normal(*shape, seed=1)
    check_slopes(losses.percentage_error, a, constants=(b,))
    check_slopes(losses.squared_log_error, a, constants=(b,))
    expected = 100 * np.mean(np.abs(a - b) / np.abs(b))
    assert float(losses.percentage_error(a, b)) == pytest.approx(expected)
    expected = np.mean((np.log(1 + a.clip(0)) - np.log(1 + b.clip(0))) ** 2)
    assert float(losses.squared_log_error(a, b)) == pytest.approx(expected)


def test_squared_error_takes_targets_of_another_dtype_and_keeps_its_own():
    loss = losses.squared_error(np.ones((2, 2), "f4"), np.full((2, 2), 3))
    assert loss.dtype == np.float32
    assert float(loss) == 4


def test_the_sum_over_many_float32_is_accurate():
    x = normal(1 << 20).astype("f4")
    exact = np.mean(np.square(x, dtype="f8"))
    assert float(losses.squared_error(x, 0 * x)) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("loss", "key"), [(losses.huber, "delta"), (losses.smooth_l1, "beta")])
def test_widths_are_not_negative(loss, key):
    with pytest.raises(SettingsError, match=f"expected {key} >=? 0, found -1"):
        loss(np.zeros(2), np.zeros(2), **{key: -1})


def test_an_infinite_prediction_has_an_infinite_logarithm():
    assert float(losses.squared_log_error(np.array([np.inf]), np.array([1.0]))) == np.inf
    assert np.isnan(float(losses.squared_log_error(np.array([np.nan]), np.array([1.0]))))


@given(
    shape=hnp.array_shapes(max_dims=3, max_side=4),
    classes=st.integers(1, 5),
    dtype=st.sampled_from(["f4", "f8"]),
    log=st.booleans(),
)
def test_it_is_pytorchs_summed_over_the_classes(shape, classes, dtype, log, torch):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(classes), shape)
    if log:
        p = np.log(p)
    elif classes > 1:
        p[..., 0] = 0  # 0 log 0 is 0
    check_loss(
        torch,
        lambda *x, **k: losses.kl_divergence(*x, log_target=log, **k),
        lambda x, t: torch.nn.functional.kl_div(x, t, reduction="none", log_target=log).sum(-1),
        normal(*shape, classes),
        p,
        dtype=dtype,
    )


@given(shape=hnp.array_shapes(max_dims=3, max_side=4), dtype=st.sampled_from(["f4", "f8"]))
def test_of_normal_distributions_it_is_pytorchs(shape, dtype, torch):
    def theirs(mean, log_variance):
        normals = torch.distributions.Normal
        own, standard = normals(mean, (log_variance / 2).exp()), normals(0.0, 1.0)
        return torch.distributions.kl_divergence(own, standard).sum(-1)

    arrays = normal(*shape, 3), normal(*shape, 3, seed=1)
    check_loss(torch, losses.gaussian_kl, theirs, *arrays, wanted=(True, True), dtype=dtype)


def test_of_a_distribution_from_itself_it_is_zero():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    assert float(losses.kl_divergence(np.log(p), p)) == pytest.approx(0, abs=1e-12)


def test_a_vector_has_no_axis_for_the_distribution():
    with pytest.raises(ShapeError, match=r"kl_divergence: expected shape .* found \(3,\)"):
        losses.kl_divergence(np.zeros(3), np.zeros(3))
    with pytest.raises(ShapeError, match=r"gaussian_kl: expected arrays .* found \(3,\)"):
        losses.gaussian_kl(np.zeros(3), np.zeros(3))


SHAPES_LIKELIHOOD = hnp.array_shapes(max_dims=3, max_side=4)
DTYPES_LIKELIHOOD = st.sampled_from(["f4", "f8"])


@given(shape=SHAPES_LIKELIHOOD, dtype=DTYPES_LIKELIHOOD, log=st.booleans(), full=st.booleans())
def test_poisson(shape, dtype, log, full, torch):
    prediction = normal(*shape) if log else np.abs(normal(*shape)) + 0.1
    counts = np.random.default_rng(0).poisson(2, shape).astype(float)
    check_loss(
        torch,
        lambda *x, **k: losses.poisson_nll(*x, log=log, full=full, **k),
        lambda x, t: torch.nn.functional.poisson_nll_loss(
            x, t, log_input=log, full=full, reduction="none"
        ),
        prediction,
        counts,
        dtype=dtype,
    )


@given(shape=SHAPES_LIKELIHOOD, dtype=DTYPES_LIKELIHOOD, low=st.booleans())
def test_gauss(shape, dtype, low, torch):
    variance = np.abs(normal(*shape, seed=1)) + 0.05
    if low:
        variance.flat[0] = 0  # less than eps
    check_loss(
        torch,
        lambda *x, **k: losses.gaussian_nll(*x, eps=0.01, **k),
        lambda m, v, t: torch.nn.functional.gaussian_nll_loss(m, t, v, eps=0.01, reduction="none"),
        normal(*shape),
        variance,
        normal(*shape, seed=2),
        wanted=(True, True),
        dtype=dtype,
    )
