"""NeuMF; and for the whole zoo: a seed decides all first weights, and a file restores a model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from daskdl import Trainer, models
from daskdl.data import SampleSet
from daskdl.errors import SettingsError, ShapeError
from daskdl.models import ncf
from daskdl.models.ncf import NeuMF
from daskdl.nn import BCEWithLogitsLoss, Module
from daskdl.nn.losses.loss import Loss
from daskdl.optim import Adam
from tests.daskdl.models.checks import file_brings_back


def small(**options):
    return NeuMF(5, 7, factors=4, layers=(8, 6, 3), **options)


def test_has_the_parameters_of_the_published_network():
    count = sum(p.data.size for p in NeuMF(13, 26).parameters())
    perceptron = 256 * 256 + 256 + 256 * 128 + 128 + 128 * 64 + 64
    assert count == (13 + 26) * (64 + 128) + perceptron + 128 + 1
    assert count + (138_493 + 26_744 - 13 - 26) * 192 == 31_832_577


def test_is_the_formula_of_the_paper():
    model = small(seed=2)
    state = model.state_dict()
    users, items = np.array([0, 4, 2]), np.array([6, 0, 3])
    product = state["user_factors.weight"][users] * state["item_factors.weight"][items]
    y = np.hstack([state["user_features.weight"][users], state["item_features.weight"][items]])
    for i in range(2):
        y = np.maximum(y @ state[f"linear.{i}.weight"].T + state[f"linear.{i}.bias"], 0)
    expected = np.hstack([product, y]) @ state["head.weight"].T + state["head.bias"]
    logits = model(np.stack([users, items], 1)).data
    np.testing.assert_allclose(logits, expected[:, 0], rtol=1e-5)


def test_takes_pairs_in_any_shape():
    model = small()
    pairs = np.stack(np.meshgrid(np.arange(5), np.arange(7), indexing="ij"), -1)
    y = model(pairs).data
    assert y.shape == (5, 7)
    np.testing.assert_allclose(model(pairs.reshape(-1, 2)).data, y.ravel(), rtol=1e-6)
    with pytest.raises(ShapeError, match=r"shape \(\.\.\., 2\), found \(5, 3\)"):
        model(np.zeros((5, 3), int))
    with pytest.raises(ShapeError, match=r"expected ids from 0 to 6, .* found 7"):
        model(np.array([[0, 7]]))


def test_many_pairs_go_through_piece_by_piece(monkeypatch):
    model, pairs = small(seed=4), np.stack([np.arange(14) % 5, np.arange(14) % 7], 1)
    y, weight = model(pairs), np.arange(14, dtype=np.float32)
    (y * weight).sum().backward()
    whole = model.flat_grad.copy()
    model.zero_grad()
    monkeypatch.setattr(ncf, "AT_ONCE", 5)
    pieces = model(pairs)
    np.testing.assert_allclose(pieces.data, y.data, rtol=1e-5)
    (pieces * weight).sum().backward()
    np.testing.assert_allclose(model.flat_grad, whole, rtol=1e-4, atol=1e-7)


@pytest.mark.slow
def test_tables_train_by_the_rows_of_a_batch():
    model = small(seed=5, sparse=True)
    assert len(model.tables) == 4
    before = model.item_factors.weight.data.copy()
    pairs = np.array([[0, 1], [1, 1], [0, 2], [1, 2]])
    samples = SampleSet.from_arrays(x=pairs, y=np.array([1, 1, 0, 0], np.float32))
    trainer = Trainer(model, BCEWithLogitsLoss(), Adam(0.05))
    trainer.fit(samples, epochs=40, batch_size=4, progress=False)
    assert ((model.eval()(pairs).data > 0) == [True, True, False, False]).all()
    changed = (model.item_factors.weight.data != before).any(1)
    np.testing.assert_array_equal(np.flatnonzero(changed), [1, 2])


@pytest.mark.parametrize("layers", [(7, 3), (8,)])
def test_refuses_other_layers(layers):
    with pytest.raises(SettingsError, match="expected an even width"):
        NeuMF(2, 2, layers=layers)


#: Functions of the seed that make the models, with settings that draw different weights.
MADE: dict[str, Callable[[int], Module]] = {
    "ConvLSTMForecaster": lambda seed: models.ConvLSTMForecaster(2, 2, channels=(4, 3), seed=seed),
    "GoogLeNet": lambda seed: models.GoogLeNet(3, auxiliary=True, seed=seed),
    "InceptionV1": lambda seed: models.InceptionV1(3, auxiliary=True, seed=seed),
    "LeNet5": lambda seed: models.LeNet5(seed=seed),
    "MobileSSD": lambda seed: models.MobileSSD(2, 96, 0.125, seed=seed),
    "VGG16": lambda seed: models.VGG16(3, width=0.0625, hidden=8, seed=seed),
    "UNet": lambda seed: models.UNet(2, 3, (4, 6), seed=seed),
    "FPN": lambda seed: models.FPN(3, 2, (4, 8), 8, seed=seed),
    "NeuMF": lambda seed: models.NeuMF(5, 7, seed=seed),
    "NeuMF sparse": lambda seed: models.NeuMF(5, 7, sparse=True, seed=seed),
    "ResNet": lambda seed: models.ResNet(18, 3, width=4, seed=seed),
    "ResNet of bottlenecks": lambda seed: models.ResNet(
        50, 3, "small", width=4, zero_last=False, seed=seed
    ),
    **{
        f"TextClassifier {encoder}": lambda seed, encoder=encoder: models.TextClassifier(
            20, 3, 8, encoder, channels=6, hidden=5, seed=seed
        )
        for encoder in ("cnn", "gru", "lstm")
    },
}


PAIRS, IDS = np.array([[1, 2], [4, 6]]), np.array([[3, 4, 5, 0]])
#: Inputs of the models, or their shapes; other models take pictures of 32 pixels.
INPUTS = {
    "ConvLSTMForecaster": (1, 2, 8, 8, 1), "LeNet5": (2, 28, 28, 1), "MobileSSD": (1, 96, 96, 3),
    "VGG16": (1, 224, 224, 3), "UNet": (1, 16, 16, 2), "NeuMF": PAIRS, "TextClassifier": IDS,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_a_file_restores_the_model(name, tmp_path):
    x = INPUTS.get(name.split()[0], (2, 32, 32, 3))
    if isinstance(x, tuple):
        x = np.random.default_rng(0).normal(size=x).astype(np.float32)
    file_brings_back(MADE[name](5), x, tmp_path / "m.safetensors")


def first_weights(name: str, seed: int) -> dict[str, np.ndarray]:
    return MADE[name](seed).state_dict()


def test_the_whole_zoo_is_tested():
    parts = {name: getattr(models, name) for name in models.__all__}
    zoo = {name for name, part in parts.items() if name != "load" and not issubclass(part, Loss)}
    # Parts of other models, steps over samples, large trunks, and one whose encoder is fitted.
    excluded = {
        "BoxTargets",
        "DeepBit",
        "MobileNetTrunk",
        "PriorBoxes",
        "SSD",
        "SSD300",
        "TabularNet",
        "Turned",
    }
    assert {name.split()[0] for name in MADE} == zoo - excluded


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_the_same_seed_draws_the_same_weights(name):
    one, other = first_weights(name, 3), first_weights(name, 3)
    assert {key for key in one if not np.array_equal(one[key], other[key])} == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_another_seed_draws_others(name):
    one, other = first_weights(name, 3), first_weights(name, 4)
    drawn = [key for key in one if one[key].ndim > 1]
    assert [key for key in drawn if np.array_equal(one[key], other[key])] == []
