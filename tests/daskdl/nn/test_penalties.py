"""Penalties pull as what they stand for would in the loss, and leave what they are given."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal


@pytest.mark.parametrize(
    ("layer", "cost"),
    [
        (
            nn.ActivityRegularization(0.3, 0.2),
            lambda torch, x: (0.3 * x.abs() + 0.2 * x * x).sum() / len(x),
        ),
        (nn.NegativeEntropyPenalty(0.7), lambda torch, x: 0.7 * (x * x.log()).sum() / len(x)),
    ],
)
def test_gradient_is_that_of_the_loss_with_the_cost(layer, cost, torch):
    given, share = np.abs(normal(4, 3)), normal(4, 3, seed=1)
    x, there = Tensor(given, requires_grad=True), torch.tensor(given, requires_grad=True)
    y = layer(x)
    np.testing.assert_array_equal(y.data, given)
    (y * y * share).sum().backward()
    ((there * there * torch.tensor(share)).sum() + cost(torch, there)).backward()
    np.testing.assert_allclose(x.grad, there.grad.numpy(), rtol=1e-12)


def test_what_is_negative_is_refused():
    with pytest.raises(SettingsError, match=r"expected l1 >= 0 and l2 >= 0, found -1 and 0\.0"):
        nn.ActivityRegularization(-1)
