"""Recurrent operations over sequences."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import SettingsError
from tests.daskdl.gradients import check_gradient
from tests.daskdl.pytorch_recurrent import compare
from tests.daskdl.recurrence import arguments


@pytest.mark.parametrize("lengths", [None, [7, 2, 5, 1]])
@pytest.mark.parametrize("both", [False, True])
def test_agrees_with_pytorch(torch, lengths, both):
    compare(torch, "rnn", lengths, both)


@pytest.mark.parametrize("lengths", [None, [7, 2, 5, 1]])
def test_relu_agrees_with_pytorch(torch, lengths):
    compare(torch, "rnn", lengths, True, nonlinearity="relu")


def test_another_nonlinearity_is_refused():
    with pytest.raises(SettingsError, match="expected 'tanh' or 'relu', found 'sigmoid'"):
        ops.rnn(*arguments("rnn"), nonlinearity="sigmoid")


@pytest.mark.parametrize("lengths", [None, [7, 2, 5, 1]])
@pytest.mark.parametrize("both", [False, True])
def test_agrees_with_pytorch_gru(torch, lengths, both):
    compare(torch, "gru", lengths, both)


def test_backward_direction_is_forward_of_the_turned_sequence():
    x, *rest = arguments("lstm", 2, 5)
    other = [a / 2 for a in rest]
    outputs, last, first = ops.bidirectional(ops.lstm, x, rest, other)
    ahead, *expected_last = ops.lstm(x, *rest)
    back, *expected_first = ops.lstm(x[:, ::-1], *other)
    np.testing.assert_allclose(outputs.data[..., :4], ahead.data, atol=1e-12)
    np.testing.assert_allclose(outputs.data[..., 4:], back.data[:, ::-1], atol=1e-12)
    for found, expected in zip((*last, *first), (*expected_last, *expected_first), strict=True):
        np.testing.assert_allclose(found.data, expected.data, atol=1e-12)


@pytest.mark.slow
def test_gradient():
    x, *rest = arguments("gru", 2, 4)
    check_gradient(
        lambda x, *a: ops.bidirectional(ops.gru, x, a[: len(rest)], a[len(rest) :], lengths=[4, 2]),
        x,
        *rest,
        *(a / 2 for a in rest),
    )


@pytest.mark.parametrize("lengths", [None, [7, 2, 5, 1]])
@pytest.mark.parametrize("both", [False, True])
def test_agrees_with_pytorch_lstm(torch, lengths, both):
    compare(torch, "lstm", lengths, both)


def test_zero_peepholes_are_none():
    *rest, peepholes = arguments("lstm")
    for with_zeros, without in zip(
        ops.lstm(*rest, 0 * peepholes), ops.lstm(*rest, None), strict=True
    ):
        np.testing.assert_allclose(with_zeros.data, without.data, atol=1e-15)
