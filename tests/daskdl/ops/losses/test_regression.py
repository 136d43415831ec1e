"""Errors of numbers against PyTorch, and by their slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import SettingsError
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
