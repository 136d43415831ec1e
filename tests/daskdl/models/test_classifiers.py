"""Classifiers of images: LeNet-5, VGG-16 and ResNets."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from daskdl import save
from daskdl.errors import SettingsError
from daskdl.models import VGG16, LeNet5, ResNet
from tests.daskdl.models.checks import definition, gradient_is_right, layers_of


def tiny(**settings) -> ResNet:
    return ResNet(**{"depth": 18, "classes": 3, "stem": "small", "width": 4} | settings)


def pictures(side: int, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(side).normal(size=(4, side, side, channels)).astype(np.float32)


@pytest.mark.slow
def test_resnet50_has_the_published_layers_and_parameters():
    layers, parameters = definition("resnet50")
    model = ResNet(50)
    assert Counter(layers_of(model)) == Counter(layers)
    assert model.flat.size == parameters == 25_557_032


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "parameters"), [(18, 11_689_512), (34, 21_797_672), (101, 44_549_160)]
)
def test_other_depths_have_the_published_parameters(depth, parameters):
    """The parameters of table 1, as torchvision counts them."""
    assert ResNet(depth).flat.size == parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "stem"), [pytest.param(18, "imagenet", marks=pytest.mark.long), (50, "small")]
)
def test_a_step_does_what_its_gradient_says(depth, stem):
    gradient_is_right(tiny(depth=depth, stem=stem, zero_last=False), pictures(32), 3)


def test_small_stem_keeps_all_rows_and_the_other_leaves_a_quarter():
    for stem, rows in (("small", 3), ("imagenet", 1)):
        seen = []
        model = tiny(stem=stem)
        model.average.forward = lambda x, seen=seen: seen.append(x.shape) or x[:, 0, 0]
        model(pictures(24))
        assert seen == [(4, rows, rows, 32)]


def test_every_block_begins_as_its_shortcut():
    block = tiny().blocks[0]
    x = np.abs(pictures(6, 4))
    np.testing.assert_array_equal(block(x).data, x)


@pytest.mark.parametrize("bottleneck", [False, True])
def test_a_block_agrees_with_pytorchs_layers(torch, bottleneck):
    block = tiny(depth=50 if bottleneck else 18, zero_last=False, seed=1).blocks[2 + bottleneck]
    x, dy = pictures(7, block.conv1.in_channels), pictures(4, block.last.channels)

    def channels_first(array):
        return torch.from_numpy(array).permute(0, 3, 1, 2).contiguous()

    def convolve(x, conv):
        weight, pad = channels_first(conv.weight.data), (conv.kernel[0] - 1) // 2
        return torch.conv2d(x, weight, None, conv.stride, pad)

    def normalise(x, norm):
        return torch.nn.functional.batch_norm(x, None, None, training=True, eps=norm.eps)

    tensor = channels_first(x).requires_grad_()
    y, pairs = tensor, [(block.conv1, block.norm1)]
    if bottleneck:
        pairs.append((block.conv2, block.norm2))
    for conv, norm in pairs:
        y = normalise(convolve(y, conv), norm).relu()
    y = normalise(convolve(y, block.conv3 if bottleneck else block.conv2), block.last)
    y = (y + normalise(convolve(tensor, block.shortcut.conv), block.shortcut.norm)).relu()
    y.backward(channels_first(dy))

    from daskdl.tensor import Tensor

    ours = Tensor(x, requires_grad=True)
    result = block(ours)
    result.backward(dy)
    np.testing.assert_allclose(result.data, y.detach().permute(0, 2, 3, 1), atol=2e-5)
    np.testing.assert_allclose(ours.grad, tensor.grad.permute(0, 2, 3, 1), atol=2e-5)


def test_refuses_other_depths_and_stems():
    with pytest.raises(SettingsError, match="found depth=20 and stem='imagenet'"):
        ResNet(20)
    with pytest.raises(SettingsError, match="found depth=18 and stem='cifar'"):
        ResNet(18, stem="cifar")


def test_lenet_has_the_parameters_of_the_paper_with_full_connections():
    assert LeNet5().flat.size == 61_706
    assert LeNet5()(pictures(28, 1)).shape == (4, 10)


def test_a_step_does_what_its_gradient_says_lenet():
    gradient_is_right(LeNet5(), pictures(28, 1), 10)


@pytest.mark.slow
def test_load_knows_the_zoo_without_an_import_of_it(tmp_path):
    save(LeNet5(), tmp_path / "m.safetensors")
    code = f"import daskdl; print(type(daskdl.load({str(tmp_path / 'm.safetensors')!r})).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "LeNet5"


PLACES = (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28)


@pytest.mark.long
def test_vgg16_has_the_published_parameters():
    """As torchvision's page has them; drawing so many weights takes a while."""
    assert VGG16().flat.size == 138_357_544


def test_pytorchs_layers_under_torchvisions_names_give_the_same_numbers(torch):
    model = VGG16(5, width=1 / 16, hidden=24).eval()
    arrays = model.state_dict(names="torch")
    assert arrays.keys() == {
        f"{name}.{kind}"
        for name in (*(f"features.{k}" for k in PLACES), *(f"classifier.{k}" for k in (0, 3, 6)))
        for kind in ("weight", "bias")
    }
    state = {name: torch.from_numpy(value) for name, value in arrays.items()}
    x = np.random.default_rng(0).normal(size=(1, 224, 224, 3)).astype(np.float32)
    y = torch.from_numpy(np.moveaxis(x, -1, 1).copy())
    for place in PLACES:
        weight, bias = state[f"features.{place}.weight"], state[f"features.{place}.bias"]
        y = torch.relu(torch.nn.functional.conv2d(y, weight, bias, padding=1))
        if place in (2, 7, 14, 21, 28):
            y = torch.nn.functional.max_pool2d(y, 2)
    y = y.flatten(1)
    for place in (0, 3, 6):
        y = torch.relu(y) if place else y
        y = y @ state[f"classifier.{place}.weight"].T + state[f"classifier.{place}.bias"]
    ours = model.predict(x)
    np.testing.assert_allclose(ours, y.numpy(), rtol=1e-3, atol=1e-4 * np.abs(ours).max())
