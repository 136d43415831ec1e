"""Dropout layers: drawn anew in training, nothing in inference."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError

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


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_a_rate_that_is_no_part_is_refused(rate):
    with pytest.raises(SettingsError, match=rf"0 <= rate <= 1, found {rate}"):
        nn.Dropout(rate)


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
    # What is left out becomes one number, and it is PyTorch's.
    dropped = [
        values[counts.argmax()]
        for values, counts in (np.unique(a, return_counts=True) for a in (y, theirs))
    ]
    assert dropped[0] == pytest.approx(dropped[1], abs=1e-5)
    assert abs((y == dropped[0]).mean() - rate) < 0.01
    np.testing.assert_array_equal(layer.eval()(x).data, x)
