"""Normalisation layers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from tests.daskdl.gradients import normal
from tests.daskdl.nn.like_pytorch import check_like_pytorch


@settings(max_examples=15)
@given(shape=st.lists(st.integers(2, 4), min_size=1, max_size=2), affine=st.booleans())
def test_agrees_with_pytorch(shape, affine, torch):
    ours, theirs = nn.LayerNorm(shape, 1e-3, affine), torch.nn.LayerNorm(shape, 1e-3, affine)
    check_like_pytorch(torch, ours, theirs, (2, 3, *shape), channels=False, tolerance=3e-5)


@settings(max_examples=15)
@given(
    groups=st.integers(1, 3),
    share=st.integers(1, 3),
    pixels=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    affine=st.booleans(),
)
def test_agrees_with_pytorch_groupnorm(groups, share, pixels, affine, torch):
    channels = groups * share
    ours = nn.GroupNorm(groups, channels, 1e-3, affine)
    theirs = torch.nn.GroupNorm(groups, channels, 1e-3, affine)
    check_like_pytorch(torch, ours, theirs, (2, *pixels, channels), tolerance=3e-5)


@pytest.mark.parametrize("shape", [(2, 4), (2, 3, 5, 4)])
def test_agrees_with_pytorch_l2norm(shape, torch):
    theirs = torch.nn.functional.normalize
    check_like_pytorch(torch, nn.Normalize(), lambda x: theirs(x, dim=-1), shape, channels=False)


def test_learned_scale_starts_as_given():
    x = normal(2, 3, 3, 4).astype("f4")
    y = nn.Normalize(4, scale=20)(x).data
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), 20, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_across_channels_agrees_with_pytorch(size, torch):
    ours, theirs = (n.LocalResponseNorm(size, 0.5, 0.6, 2.0) for n in (nn, torch.nn))
    check_like_pytorch(torch, ours, theirs, (2, 4, 3, 7))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_within_channels(size, torch):
    def theirs(x):
        mean = torch.nn.functional.avg_pool2d(x * x, size, 1, size // 2)
        return x * (1 + 0.5 * mean) ** -0.75

    check_like_pytorch(torch, nn.WithinChannelLRN(size, 0.5), theirs, (2, 6, 5, 3))


@given(
    rows=st.integers(2, 9),
    channels=st.integers(1, 20),
    momentum=st.sampled_from([0.1, 0.5]),
    affine=st.booleans(),
    relu=st.booleans(),
)
def test_agrees_with_pytorch_batchnorm(rows, channels, momentum, affine, relu, torch):
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


def test_running_averages_are_buffers_of_the_model_and_of_its_file(tmp_path):
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
