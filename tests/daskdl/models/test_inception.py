"""Inception networks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from daskdl.models import AuxiliaryLoss, GoogLeNet, InceptionV1
from daskdl.models.inception import MODULES
from daskdl.nn import CrossEntropyLoss
from tests.daskdl.models.checks import definition, gradient_is_right, layers_of


def pictures(side: int) -> np.ndarray:
    return np.random.default_rng(side).normal(size=(2, side, side, 3)).astype(np.float32)


def test_has_the_published_layers_and_parameters():
    layers, parameters = definition("inception_v1")
    model = InceptionV1()
    assert Counter(layers_of(model)) == Counter(layers)
    assert model.flat.size == parameters == 6_998_552
    assert InceptionV1(auxiliary=True).flat.size == 13_378_280  # as in Caffe's definition


@pytest.mark.slow
def test_pictures_are_halved_as_in_table_1():
    model, seen = InceptionV1(classes=2), []
    for module in (model.conv1, model.conv2, model.stack[1], model.stack[6], model.stack[8]):
        inner = module.forward
        module.forward = lambda x, inner=inner: seen.append((y := inner(x)).shape[1:]) or y
    model.eval()(pictures(224)[:1])
    assert seen == [(112, 112, 64), (56, 56, 192), (28, 28, 480), (14, 14, 832), (7, 7, 1024)]


@pytest.mark.slow
@pytest.mark.parametrize("made", [InceptionV1, GoogLeNet])
def test_a_step_does_what_its_gradient_says(made):
    gradient_is_right(made(classes=2, dropout=0.0), pictures(32), 2)


@pytest.mark.slow
@pytest.mark.parametrize(("made", "side"), [(InceptionV1, 224), (GoogLeNet, 64)])
def test_auxiliary_heads_give_scores_in_training_only(made, side):
    model = made(classes=2, auxiliary=True)
    assert [x.shape for x in model(pictures(side))] == [(2, 2)] * 3
    assert model.eval()(pictures(side)).shape == (2, 2)


def test_auxiliary_loss_adds_a_share_of_each_head():
    rng, loss, labels = np.random.default_rng(0), CrossEntropyLoss(), np.array([1, 0, 2])
    last, one, two = rng.normal(size=(3, 3, 4)).astype(np.float32)
    expected = float(loss(last, labels)) + 0.3 * float(loss(one, labels)) + 0.3 * float(
        loss(two, labels)
    )  # fmt: skip
    assert float(AuxiliaryLoss()((last, one, two), labels)) == pytest.approx(expected, rel=1e-6)
    assert float(AuxiliaryLoss()(last, labels)) == float(loss(last, labels))


def _basic(torch, below, above, size=1, stride=1):
    layers = torch.nn.Sequential()
    layers.add_module("conv", torch.nn.Conv2d(below, above, size, stride, size // 2, bias=False))
    layers.add_module("bn", torch.nn.BatchNorm2d(above, eps=0.001))
    layers.add_module("relu", torch.nn.ReLU())
    return layers


def as_torchvision_lays_it_out(torch, classes):
    """Return GoogLeNet of PyTorch's modules, under torchvision's names, with all its heads."""
    nn = torch.nn

    class Branches(nn.Module):
        def __init__(self, below, one, three, five, pooled):
            super().__init__()
            self.branch1 = _basic(torch, below, one)
            self.branch2, self.branch3 = (
                nn.Sequential(_basic(torch, below, a), _basic(torch, a, b, 3))
                for a, b in (three, five)
            )
            self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), _basic(torch, below, pooled))

        def forward(self, x):
            branches = self.branch1, self.branch2, self.branch3, self.branch4
            return torch.cat([branch(x) for branch in branches], 1)

    class Classifier(nn.Module):
        def __init__(self, below):
            super().__init__()
            self.conv = _basic(torch, below, 128)
            self.fc1, self.fc2 = nn.Linear(2048, 1024), nn.Linear(1024, classes)

        def forward(self, x):
            x = self.conv(nn.functional.adaptive_avg_pool2d(x, (4, 4))).flatten(1)
            return self.fc2(torch.relu(self.fc1(x)))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = _basic(torch, 3, 64, 7, 2)
            self.conv2, self.conv3 = _basic(torch, 64, 64), _basic(torch, 64, 192, 3)
            below = 192
            for name, (one, three, five, pooled) in MODULES.items():
                setattr(self, f"inception{name}", Branches(below, one, three, five, pooled))
                below = one + three[1] + five[1] + pooled
            self.aux1, self.aux2 = Classifier(512), Classifier(528)
            self.fc = nn.Linear(1024, classes)

        def forward(self, x):
            def halve(x, size):
                return nn.functional.max_pool2d(x, size, 2, ceil_mode=True)

            x, heads = halve(self.conv3(self.conv2(halve(self.conv1(x), 3))), 3), []
            for name in MODULES:
                x = getattr(self, f"inception{name}")(x)
                x = halve(x, {"3b": 3, "4e": 2}[name]) if name in ("3b", "4e") else x
                if name in ("4a", "4d"):
                    heads.append((self.aux1 if name == "4a" else self.aux2)(x))
            return self.fc(x.mean((2, 3))), *heads

    return Net()


@pytest.mark.slow
def test_takes_torchvisions_weights_and_gives_its_numbers():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    peer = as_torchvision_lays_it_out(torch, 7)
    for name, buffer in peer.named_buffers():
        if name.endswith(("mean", "var")):
            buffer.uniform_(0.1, 0.3)
    state = {name: value.numpy() for name, value in peer.state_dict().items()}
    model = GoogLeNet(7, auxiliary=True)
    model.load_state_dict(state, names="torch")
    out = model.state_dict(names="torch")
    assert {n: a.shape for n, a in out.items()} == {
        n: a.shape for n, a in state.items() if not n.endswith("batches_tracked")
    }
    x = 3 * pictures(64)
    with torch.inference_mode():
        expected = peer.eval()(torch.from_numpy(x.transpose(0, 3, 1, 2).copy()))
    assert np.ptp(expected[0].numpy(), axis=0).max() > 1e-3  # pictures differ
    np.testing.assert_allclose(model.predict(x), expected[0].numpy(), rtol=1e-4, atol=1e-5)
    maps = np.random.default_rng(1).normal(size=(2, 14, 14, 512)).astype(np.float32)
    with torch.inference_mode():
        head = peer.aux1(torch.from_numpy(maps.transpose(0, 3, 1, 2).copy())).numpy()
    np.testing.assert_allclose(model.heads[0].eval()(maps).data, head, rtol=1e-4, atol=1e-5)


def test_has_the_published_number_of_parameters():
    assert GoogLeNet().flat.size == 6_624_904  # as torchvision's page has it
