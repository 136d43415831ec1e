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
