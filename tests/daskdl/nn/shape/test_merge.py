"""Layers of several inputs beside numpy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch

A, B, C = (normal(2, 3, 4, seed=i).astype("f4") for i in range(3))


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Add(), A + B + C),
        (nn.Subtract(), A - B - C),
        (nn.Multiply(), A * B * C),
        (nn.Divide(), A / B / C),
        (nn.Maximum(), np.maximum(np.maximum(A, B), C)),
        (nn.Minimum(), np.minimum(np.minimum(A, B), C)),
        (nn.Average(), (A + B + C) / 3),
        (nn.Join(1), np.concatenate([A, B, C], 1)),
        (nn.Stack(0), np.stack([A, B, C])),
        (nn.Pick(1), B),
    ],
)
def test_of_three(layer, expected):
    np.testing.assert_allclose(np.asarray(layer(A, B, C)), expected, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(layer((A, B, C))), expected, rtol=1e-5)


def test_of_two_agree_with_pytorch(torch):
    f = torch.nn.functional
    for ours, theirs in (
        (nn.CosineSimilarity(), lambda a, b: f.cosine_similarity(a, b, dim=-1)),
        (nn.PairwiseDistance(), f.pairwise_distance),
        (nn.PairwiseDistance(1.0), lambda a, b: f.pairwise_distance(a, b, p=1.0)),
        (nn.Dot(), lambda a, b: (a * b).sum(-1)),
        (nn.MatMul(), lambda a, b: a @ b.transpose(1, 2)),
    ):
        if isinstance(ours, nn.MatMul):
            ours = nn.Sequential(nn.Parallel(nn.Identity(), nn.Permute((2, 1))), ours)
            np.testing.assert_allclose(
                ours((A, B)).data, theirs(torch.tensor(A), torch.tensor(B)), atol=1e-5
            )
        else:
            check_like_pytorch(torch, ours, theirs, A, B, channels=False)


def test_pieces_of_one():
    first, second = nn.Split((1, 3))(A)
    np.testing.assert_array_equal(first.data, A[..., :1])
    np.testing.assert_array_equal(second.data, A[..., 1:])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: nn.Split((1, 4))(A), r"Split: expected 5 places in axis -1, found"),
        (lambda: nn.Pick(2)(A, B), "Pick: expected an input number 2, found 2"),
        (lambda: nn.Add()(), "Add: expected at least 1 input, found none"),
        (lambda: nn.Dot()(A, B[:1]), r"Dot: expected two inputs of one shape, found \(2, 3, 4\), "),
    ],
)
def test_what_does_not_fit_is_said(call, sentence):
    with pytest.raises(ShapeError, match=sentence):
        call()


@pytest.mark.parametrize("p", [0, np.inf])
def test_a_distance_that_is_no_power_sum_is_refused(p):
    with pytest.raises(SettingsError, match="PairwiseDistance: expected p > 0 and finite"):
        nn.PairwiseDistance(p)


@pytest.mark.parametrize("layer", [nn.Add(), nn.Join(0), nn.Stack()])
def test_what_does_not_fit_names_the_layer(layer):
    name = type(layer).__name__
    with pytest.raises(ShapeError, match=rf"^{name}: expected .* found shapes \(2, 3\), \(2, 4\)"):
        layer(normal(2, 3), normal(2, 4))
