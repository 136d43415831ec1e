"""DeepBit: its three losses by hand, turned pictures, a step, its file, its codes."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data.image import Rotate
from daskdl.errors import SettingsError, ShapeError
from daskdl.models import DeepBit, DeepBitLoss, Turned
from daskdl.models.vgg import VGG16Trunk
from daskdl.nn import Flatten, Linear, Module, Sequential, Tanh
from tests.daskdl.gradients import check_gradient
from tests.daskdl.models.checks import file_brings_back


class Trunk(Module):
    def __init__(self, features=12):
        self.features = features
        self.layers = Sequential(Flatten(), Linear(32, features, seed=0), Tanh())

    def forward(self, x):
        return self.layers(x)


def pictures(count=6):
    return np.random.default_rng(0).normal(size=(count, 4, 4, 2)).astype(np.float32)


def test_losses_by_hand():
    numbers = np.random.default_rng(1).normal(size=(5, 3, 8))
    rounded = np.where(numbers > 0, 0.5, -0.5)
    weights = np.exp(-(np.array([-5.0, 10.0]) ** 2) / 200)
    parts = (
        np.mean((numbers - rounded) ** 2),
        np.mean(numbers[:, 0].mean(0) ** 2),
        np.mean((numbers[:, 1:] - numbers[:, :1]) ** 2 * weights[:, None]),
    )
    for factors in np.eye(3):
        loss = DeepBitLoss((-5.0, 10.0), *map(float, factors))
        assert float(loss(numbers, None)) == pytest.approx(factors @ parts)
    loss = DeepBitLoss((-5.0, 10.0))
    assert float(loss(numbers)) == pytest.approx(sum(parts))
    check_gradient(loss, numbers)


def test_pictures_are_turned():
    x = pictures()
    turned = Turned((-10.0, 10.0))({"x": x, "y": np.zeros(6)})["x"]
    assert turned.shape == (6, 3, 4, 4, 2)
    np.testing.assert_array_equal(turned[:, 0], x)
    np.testing.assert_array_equal(turned[:, 2], Rotate(10.0)(x))


def test_turned_pictures_go_through_as_pictures_do():
    model, x = DeepBit(16, Trunk()), pictures()
    both = np.stack([x, -x], 1)
    assert model(both).shape == (6, 2, 16)
    np.testing.assert_allclose(model(both).data[:, 1], model(-x).data, rtol=1e-5, atol=1e-6)


def test_a_step_lessens_the_loss():
    model, loss = DeepBit(16, Trunk()), DeepBitLoss((5.0,))
    x = np.stack([pictures(), pictures()[::-1]], 1)
    model.zero_grad()
    before = loss(model(x))
    before.backward()
    assert all(p.grad.any() for p in model.parameters())
    model.load_flat(model.flat - 0.1 * model.flat_grad)
    assert float(loss(model(x))) < float(before)


def test_codes_are_signs():
    model, x = DeepBit(16, Trunk()), pictures(7)
    codes = model.codes(x, batch_size=3)
    np.testing.assert_array_equal(np.unpackbits(codes, axis=1), model.predict(x) > 0)
    assert model.codes(x[:0]).shape == (0, 2)


def test_a_file_restores_the_model(tmp_path):
    file_brings_back(DeepBit(16, Trunk()), pictures(), tmp_path / "deepbit.safetensors")


@pytest.mark.long
def test_a_narrow_vgg_is_a_trunk():
    model = DeepBit(8, VGG16Trunk(width=1 / 32, hidden=8))
    assert model.predict(np.zeros((1, 224, 224, 3), np.float32)).shape == (1, 8)


def test_mistakes_are_sentences():
    with pytest.raises(SettingsError, match="expected a multiple of 8 bits, found 12"):
        DeepBit(12, Trunk())
    with pytest.raises(ShapeError, match=r"expected numbers \(N, 5, bits\), found \(2, 16\)"):
        DeepBitLoss()(np.zeros((2, 16)))
    with pytest.raises(SettingsError, match="without sample_weight"):
        DeepBitLoss()(np.zeros((2, 5, 8)), None, np.ones(2))
