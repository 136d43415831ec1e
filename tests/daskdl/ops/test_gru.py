"""The GRU beside PyTorch's, with its weights; test_sequence has what all recurrences share."""

from __future__ import annotations

import pytest

from tests.daskdl.pytorch_recurrent import compare


@pytest.mark.parametrize("lengths", [None, [7, 2, 5, 1]])
@pytest.mark.parametrize("both", [False, True])
def test_agrees_with_pytorch(torch, lengths, both):
    compare(torch, "gru", lengths, both)
