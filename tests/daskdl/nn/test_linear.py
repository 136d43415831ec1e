"""Affine and bilinear maps, and distances to learned centres."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn, ops
from tests.daskdl.nn.like_pytorch import check_like_pytorch


@pytest.mark.parametrize("lead", [(7,), (2, 3), ()])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_agrees_with_pytorch(lead, bias, torch):
    ours, theirs = nn.Linear(5, 4, bias), torch.nn.Linear(5, 4, bias)
    check_like_pytorch(torch, ours, theirs, (*lead, 5), channels=False)


@pytest.mark.parametrize(
    ("kind", "arguments", "fan"), [("Linear", (400, 100), 400), ("Conv2d", (16, 32, 3), 144)]
)
def test_initial_weights_are_pytorchs(kind, arguments, fan, torch):
    """U(-b, b), b = 1 / sqrt(fan_in), for weights and bias."""
    ours, theirs = getattr(nn, kind)(*arguments, seed=0), getattr(torch.nn, kind)(*arguments)
    for mine, other in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
        assert abs(mine.data).max() <= fan**-0.5
        assert mine.data.std() == pytest.approx(other.detach().numpy().std(), rel=0.3)
    assert ours.weight.data.std() == pytest.approx((3 * fan) ** -0.5, rel=0.05)


sizes = st.integers(1, 5)


@settings(max_examples=10)
@given(n=sizes, a=sizes, b=sizes, out=sizes, bias=st.booleans())
def test_agrees_with_pytorch(n, a, b, out, bias, torch):
    ours, theirs = nn.Bilinear(a, b, out, bias), torch.nn.Bilinear(a, b, out, bias)
    check_like_pytorch(torch, ours, theirs, (n, a), (n, b), channels=False)


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


IDS = np.random.default_rng(0).integers(0, 20, (4, 6))


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


@pytest.mark.parametrize("make", [language_model, transformer])
def test_learns_and_survives_its_file(make, tmp_path):
    """Networks of layers that no model of the zoo has."""
    model, losses = make(), []
    for step in range(60):
        with nn.drawing(step):
            y = model(IDS)
        loss = ops.cross_entropy(ops.reshape(y, shape=(-1, 5)), IDS.ravel() % 5)
        model.zero_grad()
        loss.backward()
        if not step:
            assert all(p.grad.any() for _, p in model.named_parameters())
        model.flat[:] -= 0.5 * model.flat_grad
        losses.append(float(loss))
    assert losses[-1] < 0.9 * losses[0]
    nn.save(model, tmp_path / "m.safetensors")
    loaded = nn.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.eval()(IDS).data, model.eval()(IDS).data)
    assert model.summary((6,), "int64").parameters == model.flat.size
