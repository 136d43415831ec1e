"""Layers one after the other."""

from __future__ import annotations

from daskdl import nn
from tests.daskdl.nn.layers import check_layer


def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding="same", seed=0),
        nn.Tanh(),
        nn.Sequential(nn.SpaceToDepth(2), nn.Conv2d(32, 8, 3, stride=2, seed=1), nn.Softplus()),
        nn.Flatten(),
        nn.Linear(8, 2, seed=2),
    )


def test_network(tmp_path):
    check_layer(
        network,
        (3, 6, 6, 1),
        (3, 2),
        tmp_path,
        parameters=9 * 8 + 8 + 9 * 32 * 8 + 8 + 16 + 2,
        wrong_shape=None,
    )


def test_layers_by_number_and_name():
    model = network()
    assert len(model) == 5
    assert isinstance(model[4], nn.Linear)
    names = [name for name, _ in model.named_parameters()]
    assert names[:2] == ["layers.0.weight", "layers.0.bias"]
    assert names[2] == "layers.2.layers.1.weight"


def test_empty_hands_its_input_on():
    x = object()
    assert nn.Sequential()(x) is x
