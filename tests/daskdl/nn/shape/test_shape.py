"""Layers that move, join and combine arrays, and that repeat or loop over other layers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from tests.daskdl.gradients import normal
from tests.daskdl.nn.like_pytorch import check_like_pytorch


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Reshape((4, 3)), lambda x: x.reshape(2, 4, 3)),
        (nn.Reshape((-1, 2)), lambda x: x.reshape(2, 6, 2)),
        (nn.Permute((2, 1)), lambda x: x.transpose(0, 2, 1)),
        (nn.Unsqueeze(1), lambda x: x[:, None]),
        (nn.Unsqueeze(-1), lambda x: x[..., None]),
        (nn.Select(1, -1), lambda x: x[:, -1]),
        (nn.Narrow(-1, 1, 2), lambda x: x[..., 1:3]),
        (nn.Flip(1), lambda x: x[:, ::-1]),
        (nn.Repeat(2), lambda x: np.stack([x, x], 1)),
        (nn.Flatten(), lambda x: x.reshape(2, 12)),
        (nn.Mean((0, 2)), lambda x: x.mean((0, 2))),
        *(
            (getattr(nn, name)(axis, keep), partial(f, axis=axis, keepdims=keep))
            for name, f in {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min}.items()
            for axis in (1, -1)
            for keep in (False, True)
        ),
    ],
)
def test_moves(layer, expected):
    x = normal(2, 3, 4)
    np.testing.assert_allclose(layer(x).data, expected(x), atol=1e-12)


def test_blocks_of_pixels_become_channels_and_pixels_again():
    x = normal(2, 3, 4, 6, 5)
    blocks = nn.SpaceToDepth(2)(x).data
    assert blocks.shape == (2, 3, 2, 3, 20)
    np.testing.assert_array_equal(nn.DepthToSpace(2)(blocks).data, x)
    assert nn.Flatten()(np.zeros((0, 3, 4))).shape == (0, 12)


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
def test_layers_of_three_inputs(layer, expected):
    np.testing.assert_allclose(np.asarray(layer(A, B, C)), expected, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(layer((A, B, C))), expected, rtol=1e-5)


def test_layers_of_two_inputs_agree_with_pytorch(torch):
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


def test_split():
    first, second = nn.Split((1, 3))(A)
    np.testing.assert_array_equal(first.data, A[..., :1])
    np.testing.assert_array_equal(second.data, A[..., 1:])


X = normal(2, 5, 4).astype("f4")


def test_a_layer_at_each_step():
    layer = nn.Conv1d(3, 2, 2, seed=0)
    x = normal(2, 3, 6, 3).astype("f4")
    y = nn.TimeDistributed(layer)(x).data
    for t in range(3):
        np.testing.assert_allclose(y[:, t], layer(x[:, t]).data, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("merge", ["concatenate", "sum", "mean", "multiply"])
@pytest.mark.parametrize("returns", ["both", "sequence"])
def test_both_directions(merge, returns):
    ahead, back = (nn.GRU(4, 3, returns=returns, seed=i) for i in range(2))
    lengths = np.array([5, 3])
    y = nn.Bidirectional(ahead, back, merge)(X, lengths).data
    first = ahead(X, lengths=lengths)
    second = back(X, lengths=lengths, reverse=True)
    first, second = ((r[0] if returns == "both" else r).data for r in (first, second))
    expected = {
        "concatenate": np.concatenate([first, second], -1),
        "sum": first + second,
        "mean": (first + second) / 2,
        "multiply": first * second,
    }
    np.testing.assert_allclose(y, expected[merge], atol=1e-6)


def test_a_bidirectional_layer_is_two():
    both = nn.LSTM(4, 3, bidirectional=True, returns="sequence", seed=0)
    ahead, back = (nn.LSTM(4, 3, seed=1) for _ in range(2))
    for layer, end in ((ahead, ""), (back, "_reverse")):
        for kind in ("weight_input", "weight_state", "bias"):
            getattr(layer, f"{kind}_0").data[:] = getattr(both, f"{kind}_0{end}").data
    np.testing.assert_array_equal(nn.Bidirectional(ahead, back)(X).data, both(X).data)


def test_the_decoder_reads_its_own_outputs():
    layer, head = nn.LSTM(4, 3, layers=2, seed=0), nn.Linear(3, 4, seed=1)
    _, start = layer(X)
    x, state, expected = X[:, 0], start, []
    for _ in range(3):
        y, state = layer(x[:, None], state)
        x = head(y.data[:, 0]).data
        expected.append(x)
    result = nn.RecurrentDecoder(layer, 3, head)(X[:, 0], start)
    np.testing.assert_allclose(result.data, np.stack(expected, 1), atol=1e-6)


def test_masked_steps_are_zero():
    x = X.copy()
    x[0, 2] = 7
    x[1, 0, 0] = 7
    y = nn.Masking(7)(x).data
    assert not y[0, 2].any()
    np.testing.assert_array_equal(np.delete(y, 2, 1), np.delete(x, 2, 1))
