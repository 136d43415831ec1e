"""Both directions: what comes from which; the tests of lstm, gru and rnn compare with PyTorch."""

from __future__ import annotations

import numpy as np

from daskdl import ops
from tests.daskdl.gradients import check_gradient
from tests.daskdl.recurrence import arguments


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


def test_gradient():
    x, *rest = arguments("gru", 2, 4)
    check_gradient(
        lambda x, *a: ops.bidirectional(ops.gru, x, a[: len(rest)], a[len(rest) :], lengths=[4, 2]),
        x,
        *rest,
        *(a / 2 for a in rest),
    )
