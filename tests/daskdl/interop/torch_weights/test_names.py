"""PyTorch's names: networks of torchvision's structure give the same results here."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from ci.example_data import downloaded
from daskdl import models, nn, ops
from daskdl.errors import ShapeError
from daskdl.interop import read
from tests.daskdl.gradients import normal


def torch_resnet(torch, counts, bottleneck, width, classes):
    """A ResNet with torchvision's names, for comparison."""
    tn = torch.nn

    class Block(tn.Module):
        def __init__(self, below, width, stride):
            super().__init__()
            above = 4 * width if bottleneck else width
            sizes = [(below, width, 1), (width, width, 3), (width, above, 1)] if bottleneck else [
                (below, width, 3), (width, above, 3)]  # fmt: skip
            at = 1 if bottleneck else 0
            for i, (a, b, k) in enumerate(sizes):
                conv = tn.Conv2d(a, b, k, stride if i == at else 1, k // 2, bias=False)
                setattr(self, f"conv{i + 1}", conv)
                setattr(self, f"bn{i + 1}", tn.BatchNorm2d(b))
            self.count = len(sizes)
            self.downsample = None
            if stride != 1 or below != above:
                self.downsample = tn.Sequential(
                    tn.Conv2d(below, above, 1, stride, bias=False), tn.BatchNorm2d(above)
                )

        def forward(self, x):
            y = x
            for i in range(1, self.count + 1):
                y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
                y = torch.relu(y) if i < self.count else y
            return torch.relu(y + (x if self.downsample is None else self.downsample(x)))

    class Net(tn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = tn.Conv2d(3, width, 7, 2, 3, bias=False)
            self.bn1, self.pool = tn.BatchNorm2d(width), tn.MaxPool2d(3, 2, 1)
            below = width
            for stage, count in enumerate(counts):
                blocks = []
                for i in range(count):
                    blocks.append(Block(below, width << stage, 2 if stage and not i else 1))
                    below = (4 if bottleneck else 1) * (width << stage)
                setattr(self, f"layer{stage + 1}", tn.Sequential(*blocks))
            self.fc = tn.Linear(below, classes)

        def forward(self, x):
            x = self.pool(torch.relu(self.bn1(self.conv1(x))))
            for stage in range(1, 5):
                x = getattr(self, f"layer{stage}")(x)
            return self.fc(x.mean((2, 3)))

    net = Net()
    for module in net.modules():
        if isinstance(module, tn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 1.5)
    return net.eval()


@pytest.mark.parametrize(("depth", "counts", "bottleneck"), [
    (18, (2, 2, 2, 2), False), (50, (3, 4, 6, 3), True),
])  # fmt: skip
def test_resnets(tmp_path, torch, depth, counts, bottleneck):
    torch.manual_seed(0)
    net = torch_resnet(torch, counts, bottleneck, 4, 5)
    torch.save(net.state_dict(), tmp_path / "w.pth")
    model = models.ResNet(depth, 5, width=4)
    model.load_state_dict(read(tmp_path / "w.pth"), names="torch")
    x = normal(2, 64, 64, 3).astype("f4")
    with torch.no_grad():
        right = net(torch.tensor(x).permute(0, 3, 1, 2)).numpy()
    np.testing.assert_allclose(model.predict(x), right, rtol=1e-3, atol=1e-4 * np.abs(right).max())
    out = model.state_dict(names="torch")
    for name, tensor in net.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            np.testing.assert_array_equal(out[name], tensor.numpy())


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(torch, kind):
    net = getattr(torch.nn, kind)(4, 3, num_layers=2, batch_first=True, bidirectional=True)
    layer = getattr(nn, kind)(4, 3, layers=2, bidirectional=True, returns="sequence")
    layer.load_state_dict({n: t.numpy() for n, t in net.state_dict().items()}, names="torch")
    x = normal(2, 5, 4).astype("f4")
    with torch.no_grad():
        right = net(torch.tensor(x))[0].numpy()
    np.testing.assert_allclose(layer.predict(x), right, atol=1e-5)
    net.load_state_dict({n: torch.tensor(a) for n, a in layer.state_dict(names="torch").items()})
    with torch.no_grad():
        np.testing.assert_allclose(net(torch.tensor(x))[0].numpy(), right, atol=1e-5)


@pytest.mark.parametrize("prefix", ["", "layers."])
def test_images_are_flattened_in_another_order(torch, prefix):
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 20, 6),
        torch.nn.Linear(6, 2),
    )  # fmt: skip
    ours = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 20, 6), nn.Linear(6, 2)
    )
    state = {name: tensor.numpy() for name, tensor in theirs.state_dict().items()}
    ours.load_state_dict({prefix + name: array for name, array in state.items()}, names="torch")
    x = normal(2, 3, 6, 7).astype("f4")
    with torch.no_grad():
        right = theirs(torch.tensor(x)).numpy()
    np.testing.assert_allclose(ours.predict(x.transpose(0, 2, 3, 1)), right, atol=1e-5)
    for name, array in ours.state_dict(names="torch").items():
        np.testing.assert_array_equal(array, state[name])


def test_layers_of_sequentials_have_the_numbers_of_pytorch(torch):
    theirs = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(4, 2)))
    ours = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))
    ours.load_state_dict({n: a.numpy() for n, a in theirs.state_dict().items()}, names="torch")
    theirs.load_state_dict({n: torch.tensor(a) for n, a in ours.state_dict(names="torch").items()})


def test_missing_weights_are_named():
    model = models.ResNet(18, 5, width=4)
    with pytest.raises(ShapeError, match=r"PyTorch's 'conv1.weight' for 'conv.weight' is missing"):
        model.load_state_dict({"features.weight": np.zeros(3)}, names="torch")


class Encoder(nn.Module):
    """Resemblyzer's network: the last state of three LSTM layers, a linear one and a ReLU."""

    def __init__(self):
        self.lstm = nn.LSTM(40, 256, layers=3, returns="last")
        self.linear = nn.Linear(256, 256)

    def forward(self, x):
        return ops.normalize(ops.relu(self.linear(self.lstm(x))))


@pytest.mark.slow
def test_resemblyzer(tmp_path, torch):
    wheel = downloaded("resemblyzer==0.1.4", tmp_path)
    if wheel is None:
        pytest.skip("the package cannot be had")
    path = tmp_path / "pretrained.pt"
    path.write_bytes(zipfile.Path(wheel, "resemblyzer/pretrained.pt").read_bytes())
    state = torch.load(path, weights_only=True, map_location="cpu")["model_state"]
    weights = read(path, "model_state.")
    assert weights.keys() == state.keys()
    for name, tensor in state.items():
        np.testing.assert_array_equal(weights[name], tensor.numpy())

    wanted = {name: array for name, array in weights.items() if "similarity" not in name}
    encoder = Encoder()
    encoder.load_state_dict(wanted, names="torch")
    lstm, linear = torch.nn.LSTM(40, 256, 3, batch_first=True), torch.nn.Linear(256, 256)
    lstm.load_state_dict({n[5:]: t for n, t in state.items() if n.startswith("lstm.")})
    linear.load_state_dict({n[7:]: t for n, t in state.items() if n.startswith("linear.")})
    x = np.abs(normal(4, 30, 40)).astype("f4")
    with torch.no_grad():
        last = torch.relu(linear(lstm(torch.tensor(x))[1][0][-1]))
        right = torch.nn.functional.normalize(last).numpy()
    np.testing.assert_allclose(encoder.predict(x), right, atol=1e-5)
