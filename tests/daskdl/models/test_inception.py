"""Inception-v1: the published structure, auxiliary heads, a step, its file."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from daskdl.models import AuxiliaryLoss, InceptionV1
from daskdl.nn import CrossEntropyLoss
from tests.daskdl.models.published import definition, layers_of
from tests.daskdl.models.steps import file_brings_back, gradient_is_right


def pictures(side: int) -> np.ndarray:
    return np.random.default_rng(side).normal(size=(2, side, side, 3)).astype(np.float32)


def test_has_the_published_layers_and_parameters():
    layers, parameters = definition("inception_v1")
    model = InceptionV1()
    assert Counter(layers_of(model)) == Counter(layers)
    assert model.flat.size == parameters == 6_998_552


def test_pictures_are_halved_as_in_table_1():
    model, seen = InceptionV1(classes=2), []
    for module in (model.conv1, model.conv2, model.stack[1], model.stack[6], model.stack[8]):
        inner = module.forward
        module.forward = lambda x, inner=inner: seen.append((y := inner(x)).shape[1:]) or y
    model.eval()(pictures(224)[:1])
    assert seen == [(112, 112, 64), (56, 56, 192), (28, 28, 480), (14, 14, 832), (7, 7, 1024)]


def test_a_step_does_what_its_gradient_says():
    gradient_is_right(InceptionV1(classes=2, dropout=0.0), pictures(32), 2)


def test_auxiliary_heads_speak_in_training_only():
    model = InceptionV1(classes=2, auxiliary=True)
    assert InceptionV1(auxiliary=True).flat.size == 13_378_280  # as Caffe's definition has
    logits = model(pictures(224)[:1])
    assert [x.shape for x in logits] == [(1, 2)] * 3
    assert model.eval()(pictures(224)[:1]).shape == (1, 2)


def test_auxiliary_loss_adds_a_share_of_each_head():
    rng, plain, labels = np.random.default_rng(0), CrossEntropyLoss(), np.array([1, 0, 2])
    last, one, two = rng.normal(size=(3, 3, 4)).astype(np.float32)
    expected = float(plain(last, labels)) + 0.3 * float(plain(one, labels)) + 0.3 * float(
        plain(two, labels)
    )  # fmt: skip
    assert float(AuxiliaryLoss()((last, one, two), labels)) == pytest.approx(expected, rel=1e-6)
    assert float(AuxiliaryLoss()(last, labels)) == float(plain(last, labels))


def test_model_file_brings_it_back(tmp_path):
    model = InceptionV1(classes=2, seed=3)
    file_brings_back(model, pictures(32), tmp_path / "m.safetensors")
