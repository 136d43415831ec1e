"""The RNN beside PyTorch's, with its weights; test_sequence has what all recurrences share."""

from __future__ import annotations

import pytest

from daskdl import ops
from daskdl.errors import SettingsError
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
