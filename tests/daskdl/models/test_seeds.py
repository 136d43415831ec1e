"""A model's seed decides all of its first weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from daskdl import models
from daskdl.nn import Module
from daskdl.nn.losses.loss import Loss

#: By name, of settings that differ in what is drawn: a function of the seed.
MADE: dict[str, Callable[[int], Module]] = {
    "ConvLSTMForecaster": lambda seed: models.ConvLSTMForecaster(2, 2, channels=(4, 3), seed=seed),
    "GoogLeNet": lambda seed: models.GoogLeNet(3, auxiliary=True, seed=seed),
    "InceptionV1": lambda seed: models.InceptionV1(3, auxiliary=True, seed=seed),
    "LeNet5": lambda seed: models.LeNet5(seed=seed),
    "MobileSSD": lambda seed: models.MobileSSD(2, 96, 0.125, seed=seed),
    "VGG16": lambda seed: models.VGG16(3, width=0.0625, hidden=8, seed=seed),
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


def first_weights(name: str, seed: int) -> dict[str, np.ndarray]:
    return MADE[name](seed).state_dict()


def test_the_whole_zoo_is_asked():
    parts = {name: getattr(models, name) for name in models.__all__}
    zoo = {name for name, part in parts.items() if name != "load" and not issubclass(part, Loss)}
    # Parts of the others, steps over samples, large trunks, and one whose encoder is fitted.
    aside = {
        "BoxTargets",
        "DeepBit",
        "MobileNetTrunk",
        "PriorBoxes",
        "SSD",
        "SSD300",
        "TabularNet",
        "Turned",
    }
    assert {name.split()[0] for name in MADE} == zoo - aside


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
