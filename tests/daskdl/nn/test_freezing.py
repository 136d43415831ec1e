"""Frozen parameters: no gradient reaches them, by name, wildcard, and through copies."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import SettingsError

X = np.ones((4, 3), np.float32)


def model():
    return nn.Sequential(nn.Linear(3, 4, seed=0), nn.Tanh(), nn.Linear(4, 2, seed=1))


def learning(network):
    """Return the names of the parameters whose gradients are not zero."""
    network.zero_grad()
    ops.sum(network(X)).backward()
    return [name for name, p in network.named_parameters() if p.grad.any()]


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["layers.0"], ["layers.2.weight", "layers.2.bias"]),
        (["*.bias"], ["layers.0.weight", "layers.2.weight"]),
        (["layers.0.bias", "layers.2.weight"], ["layers.0.weight", "layers.2.bias"]),
        ([], []),
    ],
)
def test_by_name(names, left):
    network = model().freeze(*names) if left else model()
    if not left:
        network.freeze()
        assert not any(p.requires_grad for p in network.parameters())
        return
    assert learning(network) == left
    for other in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert learning(other) == left
    assert len(learning(network.unfreeze())) == 4


def test_gradients_that_were_there_become_zero():
    network = model()
    assert len(learning(network)) == 4
    network.freeze("layers.2")
    assert not network.flat_grad[-10:].any()
    assert network.flat_grad[:-10].any()


def test_unknown_names_are_told_and_nothing_is_changed():
    network = model()
    with pytest.raises(
        SettingsError, match=r"such as 'layers\.2', .*'layers\.0\.bias', found 'head'"
    ):
        network.freeze("layers.0", "head")
    assert len(learning(network)) == 4
