"""Affine and bilinear maps, and distances to learned centres."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn, ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch
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


sizes = st.integers(1, 5)


@settings(max_examples=10)
@given(n=sizes, a=sizes, b=sizes, out=sizes, bias=st.booleans())
def test_agrees_with_pytorch(n, a, b, out, bias, torch):
    ours, theirs = nn.Bilinear(a, b, out, bias), torch.nn.Bilinear(a, b, out, bias)
    check_like_pytorch(torch, ours, theirs, (n, a), (n, b), channels=False)


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"Bilinear: expected .* found \(2, 3\) and \(2, 3\)"):
        nn.Bilinear(3, 4, 5)(np.ones((2, 3), "f4"), np.ones((2, 3), "f4"))


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 4)])
@pytest.mark.parametrize("name", ["Euclidean", "Cosine"])
def test_agrees_with_pytorch_distances(name, shape, torch):
    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(5, 4))

        def forward(self, x):
            if name == "Euclidean":
                return (x[..., None, :] - self.weight).norm(dim=-1)
            return torch.nn.functional.cosine_similarity(x[..., None, :], self.weight, dim=-1)

    check_like_pytorch(torch, getattr(nn, name)(4, 5), Theirs(), shape, channels=False)


def test_a_centre_has_finite_slopes():
    layer = nn.Euclidean(3, 2, seed=0)
    y = layer(layer.weight.data.copy())
    y.backward(np.ones((2, 2), "f4"))
    assert y.data[0, 0] < 1e-5
    assert np.isfinite(layer.weight.grad).all()


def test_other_channels_are_refused():
    for layer in (nn.Euclidean(3, 2), nn.Cosine(3, 2)):
        with pytest.raises(ShapeError, match=r"(Euclidean|Cosine): expected .* \(\.\.\., 3\)"):
            layer(normal(2, 4).astype("f4"))


IDS = np.random.default_rng(0).integers(0, 20, (4, 6))


def block(channels):
    return nn.Residual(
        nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False, seed=1),
            nn.BatchNorm(channels, relu=True),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False, seed=2),
            nn.BatchNorm(channels),
        ),
        activation=nn.ReLU(),
    )


def lenet():
    model = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2, seed=0), nn.Tanh(), nn.MaxPool2d(2))
    model.add(nn.Conv2d(6, 8, 5, padding=2, seed=1)).add(nn.Tanh()).add(nn.MaxPool2d(2))
    return model.add(nn.Flatten()).add(nn.Linear(32, 5, seed=2)).add(nn.LogSoftmax())


def inception():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, "same", seed=0),
        nn.LocalResponseNorm(),
        nn.Concat(
            nn.Conv2d(4, 3, 1, seed=1),
            nn.Sequential(nn.Conv2d(4, 2, 1, seed=2), nn.ReLU(), nn.Conv2d(2, 4, 3, 1, 1, seed=3)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(4, 2, 1, seed=4)),
        ),
        nn.GlobalAvgPool(),
        nn.Linear(9, 5, seed=5),
    )


def resnet():
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5, seed=3))
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, seed=0), block(4), nn.MaxPool2d(2), head)


def text_classifier():
    return nn.Sequential(
        nn.Embedding(20, 8, padding_index=0, seed=0),
        nn.Conv1d(8, 6, 3, seed=1),
        nn.ReLU(),
        nn.GlobalMaxPool(),
        nn.Dropout(0.1),
        nn.Linear(6, 5, seed=2),
    )


def language_model():
    return nn.Sequential(
        nn.Embedding(20, 8, seed=0),
        nn.LSTM(8, 6, layers=2, dropout=0.1, returns="sequence", seed=1),
        nn.TimeDistributed(nn.Linear(6, 5, seed=2)),
    )


def transformer():
    return nn.Sequential(
        nn.Embedding(20, 8, seed=0),
        nn.PositionalEncoding(8),
        nn.TransformerBlock(8, 2, 16, 0.1, "gelu", norm_first=True, causal=True, seed=1),
        nn.LayerNorm(8),
        nn.Linear(8, 5, seed=2),
    )


class Factors(nn.Module):
    """A matrix factorisation beside a small network, over pairs of ids."""

    def __init__(self):
        self.users, self.items = nn.Embedding(20, 4, seed=0), nn.Embedding(20, 4, seed=1)
        self.network = nn.Sequential(nn.Linear(8, 6, seed=2), nn.ReLU())
        self.head = nn.Linear(10, 5, seed=3)

    def forward(self, pairs):
        user, item = self.users(pairs[:, 0]), self.items(pairs[:, 1])
        deep = self.network(ops.concatenate(user, item))
        return self.head(ops.concatenate(user * item, deep))


IMAGES = normal(4, 8, 8, 1).astype("f4")
MODELS = {
    "lenet": (lenet, IMAGES),
    "inception": (inception, IMAGES),
    "resnet": (resnet, IMAGES),
    "text classifier": (text_classifier, IDS),
    "language model": (language_model, IDS),
    "transformer": (transformer, IDS),
    "factors": (Factors, IDS[:, :2]),
}


@pytest.mark.parametrize("name", MODELS)
def test_learns_and_survives_its_file(name, tmp_path):
    make, x = MODELS[name]
    model = make()
    labels = IDS % 5
    losses = []
    for step in range(60):
        with nn.drawing(step):
            y = model(x)
        targets = labels if y.shape[:-1] == labels.shape else labels[:, 0]
        y = ops.reshape(y, shape=(-1, 5))
        loss = ops.cross_entropy(y, targets.reshape(-1))
        model.zero_grad()
        loss.backward()
        if not step:
            assert all(p.grad.any() for _, p in model.named_parameters())
        model.flat[:] -= 0.5 * model.flat_grad
        losses.append(float(loss))
    assert losses[-1] < 0.9 * losses[0]
    nn.save(model, tmp_path / "m.safetensors")
    loaded = nn.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.eval()(x).data, model.eval()(x).data)
    dtype = "float32" if x.dtype == np.float32 else "int64"
    assert model.summary(x.shape[1:], dtype).parameters == model.flat.size
