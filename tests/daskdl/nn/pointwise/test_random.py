"""Layers that draw or penalise in training: dropout, noise, penalties."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal

X = np.ones((50, 40), np.float32)


def test_training_leaves_out_a_part_and_inference_nothing():
    layer = nn.Dropout(0.25)
    with nn.drawing(1):
        y = layer(X).data
    assert 0.2 < (y == 0).mean() < 0.3
    np.testing.assert_allclose(y[y != 0], 1 / 0.75, rtol=1e-6)
    np.testing.assert_array_equal(layer.eval()(X).data, X)


def test_each_layer_and_each_pass_draws_anew_and_a_seed_repeats_all():
    model = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5))
    with nn.drawing(1):
        first, second = model[0](X).data, model[1](X).data
    with nn.drawing(1):
        again = model[0](X).data
    with nn.drawing(2):
        other = model[0](X).data
    np.testing.assert_array_equal(again, first)
    for different in (second, other):
        assert (different != first).mean() > 0.4


def test_whole_channels_of_a_sample_are_left_out():
    for shape in [(20, 7, 30), (20, 3, 4, 30), (20, 2, 3, 2, 30)]:
        layer, x = nn.SpatialDropout(0.4), np.ones(shape, np.float32)
        with nn.drawing(1):
            y = layer(x).data
        flat = y.reshape(20, -1, 30)
        assert (flat == flat[:, :1]).all()
        assert 0.3 < (y == 0).mean() < 0.5
        np.testing.assert_allclose(y[y != 0], 1 / 0.6, rtol=1e-6)
        np.testing.assert_array_equal(layer.eval()(x).data, x)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_alpha_dropout_keeps_mean_and_variance(rate, torch):
    layer = nn.AlphaDropout(rate)
    x = np.random.default_rng(0).standard_normal((300, 300)).astype("f4")
    with nn.drawing(1):
        y = layer(x).data
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 1) < 0.02
    theirs = torch.nn.functional.alpha_dropout(torch.tensor(x), rate, training=True).numpy()
    # Dropped values become one number, PyTorch's.
    dropped = [
        values[counts.argmax()]
        for values, counts in (np.unique(a, return_counts=True) for a in (y, theirs))
    ]
    assert dropped[0] == pytest.approx(dropped[1], abs=1e-5)
    assert abs((y == dropped[0]).mean() - rate) < 0.01
    np.testing.assert_array_equal(layer.eval()(x).data, x)


X_NOISE = np.full((100, 100), 2, np.float32)


@pytest.mark.parametrize(
    ("layer", "deviation"), [(nn.GaussianDropout(0.2), 2 * 0.5), (nn.GaussianNoise(0.3), 0.3)]
)
def test_moments_and_seeds(layer, deviation):
    with nn.drawing(1):
        first, second = layer(X_NOISE).data, layer(X_NOISE).data
    with nn.drawing(1):
        np.testing.assert_array_equal(layer(X_NOISE).data, first)
    assert (first != second).mean() > 0.99
    assert first.dtype == np.float32
    assert first.mean() == pytest.approx(2, abs=5 * deviation / 100)
    assert first.std() == pytest.approx(deviation, rel=0.05)
    np.testing.assert_array_equal(layer.eval()(X_NOISE).data, X_NOISE)
    layer.train()


def test_sampler():
    layer, log_variance = nn.GaussianSampler(), np.full(X_NOISE.shape, np.log(9), np.float32)
    with nn.drawing(1):
        y = layer(X_NOISE, log_variance).data
    assert y.mean() == pytest.approx(2, abs=0.15)
    assert y.std() == pytest.approx(3, rel=0.05)
    np.testing.assert_array_equal(layer.eval()((X_NOISE, log_variance)).data, X_NOISE)


@pytest.mark.parametrize(
    ("layer", "cost"),
    [
        (
            nn.ActivityRegularization(0.3, 0.2),
            lambda torch, x: (0.3 * x.abs() + 0.2 * x * x).sum() / len(x),
        ),
        (nn.NegativeEntropyPenalty(0.7), lambda torch, x: 0.7 * (x * x.log()).sum() / len(x)),
    ],
)
def test_gradient_is_that_of_the_loss_with_the_cost(layer, cost, torch):
    values, share = np.abs(normal(4, 3)), normal(4, 3, seed=1)
    x, there = Tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    y = layer(x)
    np.testing.assert_array_equal(y.data, values)
    (y * y * share).sum().backward()
    ((there * there * torch.tensor(share)).sum() + cost(torch, there)).backward()
    np.testing.assert_allclose(x.grad, there.grad.numpy(), rtol=1e-12)
