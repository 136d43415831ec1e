"""The LSTM beside PyTorch's, with its weights; test_sequence has what all recurrences share."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from tests.daskdl.pytorch_recurrent import compare
from tests.daskdl.recurrence import arguments


@pytest.mark.parametrize("lengths", [None, [7, 2, 5, 1]])
@pytest.mark.parametrize("both", [False, True])
def test_agrees_with_pytorch(torch, lengths, both):
    compare(torch, "lstm", lengths, both)


def test_zero_peepholes_are_none():
    *rest, peepholes = arguments("lstm")
    for with_zeros, without in zip(
        ops.lstm(*rest, 0 * peepholes), ops.lstm(*rest, None), strict=True
    ):
        np.testing.assert_allclose(with_zeros.data, without.data, atol=1e-15)
