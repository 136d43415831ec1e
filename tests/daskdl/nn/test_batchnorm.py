"""The batch norm layer beside PyTorch's: training, running averages, inference, the model file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal


@given(
    rows=st.integers(2, 9),
    channels=st.integers(1, 20),
    momentum=st.sampled_from([0.1, 0.5]),
    affine=st.booleans(),
    relu=st.booleans(),
)
def test_agrees_with_pytorch(rows, channels, momentum, affine, relu, torch):
    ours = nn.BatchNorm(channels, 1e-3, momentum, affine, relu)
    theirs = torch.nn.BatchNorm1d(channels, 1e-3, momentum, affine)
    if affine:
        for name, values in (("weight", normal(channels)), ("bias", normal(channels))):
            getattr(ours, name).data[:] = values
            getattr(theirs, name).data[:] = torch.from_numpy(values)
    for step in range(3):
        x = (3 + (1 + step) * normal(rows, channels)).astype("f4")
        expected = theirs(torch.from_numpy(x))
        expected = torch.relu(expected) if relu else expected
        np.testing.assert_allclose(ours(x).data, expected.detach(), atol=1e-4)
    np.testing.assert_allclose(ours.running_mean.data, theirs.running_mean, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours.running_variance.data, theirs.running_var, rtol=1e-4)
    expected = theirs.eval()(torch.from_numpy(x))
    expected = torch.relu(expected) if relu else expected
    np.testing.assert_allclose(ours.eval()(x).data, expected.detach(), atol=1e-4)


def test_its_averages_are_buffers_of_the_model_and_of_its_file(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4, seed=0), nn.BatchNorm(4))
    model(normal(10, 3).astype("f4"))
    assert [name for name, _ in model.named_buffers()] == [
        "layers.1.running_mean",
        "layers.1.running_variance",
    ]
    assert model.flat.size == 3 * 4 + 4 + 8
    running = model.flat_buffers.copy()
    assert running[:4].all()
    nn.save(model, tmp_path / "m.safetensors")
    loaded = nn.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.flat_buffers, running)


def test_inference_changes_nothing_and_takes_an_empty_batch():
    layer = nn.BatchNorm(3)
    before = layer.flat_buffers.copy()
    layer.eval()(normal(4, 3).astype("f4"))
    layer.train()(np.empty((0, 3), np.float32))
    np.testing.assert_array_equal(layer.flat_buffers, before)


def test_other_channels_are_refused():
    with pytest.raises(ShapeError, match=r"BatchNorm: expected an input of shape \(\.\.\., 3\)"):
        nn.BatchNorm(3)(normal(2, 4).astype("f4"))
