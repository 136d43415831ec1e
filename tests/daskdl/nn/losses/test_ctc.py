"""CTC as a module."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.ops import losses as ops
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_module

LABELS = np.array([[1, 2], [1, 1], [2, -1]])


@pytest.mark.parametrize("settings", [{}, {"blank": 3}])
def test_it_is_its_operation(settings):
    check_module(nn.CTCLoss(**settings), partial(ops.ctc, **settings), normal(3, 5, 4), LABELS)


def test_lengths_and_what_is_impossible():
    loss = nn.CTCLoss(zero_infinity=True)
    lengths = np.array([4, 2, 5])
    expected = ops.ctc(normal(3, 5, 4), LABELS, lengths=lengths, zero_infinity=True)
    assert float(loss(normal(3, 5, 4), LABELS, lengths=lengths)) == float(expected)
    assert np.isfinite(float(expected))
    assert np.isinf(float(nn.CTCLoss()(normal(3, 5, 4), LABELS, lengths=lengths)))
