"""The affine layer."""

from __future__ import annotations

import pytest

from daskdl import nn
from tests.daskdl.nn.layers import check_layer


@pytest.mark.parametrize("lead", [(7,), (2, 3), ()])
@pytest.mark.parametrize("bias", [True, False])
def test_layer(lead, bias, tmp_path):
    check_layer(
        lambda: nn.Linear(5, 4, bias, seed=1),
        (*lead, 5),
        (*lead, 4),
        tmp_path,
        parameters=20 + 4 * bias,
        wrong_shape=(*lead, 6),
        sentence=r"expected an input of shape \(\.\.\., 5\)",
    )


def test_initial_weights_are_pytorchs(torch):
    ours, theirs = nn.Linear(400, 100, seed=0), torch.nn.Linear(400, 100)
    assert abs(ours.weight.data).max() <= 1 / 20
    expected = theirs.weight.detach().numpy().std()
    assert ours.weight.data.std() == pytest.approx(expected, rel=0.05)
