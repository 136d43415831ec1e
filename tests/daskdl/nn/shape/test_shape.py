"""Layers that move numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


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


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (nn.SpaceToDepth(2), r"SpaceToDepth: .* H and W in multiples of 2, found \(2, 3, 4\)"),
        (nn.DepthToSpace(3), r"DepthToSpace: .* C in multiples of 9, found \(2, 3, 4\)"),
        (nn.Reshape((5, 2)), r"Reshape: expected samples of 10 .*, found \(3, 4\)"),
        (nn.Reshape((-1, 5)), r"Reshape: expected samples of 5 .*, found \(3, 4\)"),
        (nn.Permute((1,)), r"Permute: expected axes 1 to 2 .* found \(1,\)"),
        (nn.Squeeze(1), r"Squeeze: expected length 1 of axis 1, found shape \(2, 3, 4\)"),
        (nn.Unsqueeze(9), r"Unsqueeze: expected an axis from -4 to 3, found 9"),
        (nn.Select(1, 3), r"Select: expected axis 1 to have a place 3"),
        (nn.Select(3, 0), r"Select: expected an input with an axis 3"),
        (nn.Narrow(1, 2, 2), r"Narrow: expected axis 1 to have places 2 to 4"),
    ],
)
def test_what_does_not_fit_is_said(layer, sentence):
    with pytest.raises(ShapeError, match=sentence):
        layer(normal(2, 3, 4))


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
def test_what_does_not_fit_is_said_of_merge(call, sentence):
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


X = normal(2, 5, 4).astype("f4")


def test_at_each_step():
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


def test_the_loop_feeds_itself():
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


def test_what_does_not_fit_is_said_of_sequence():
    with pytest.raises(SettingsError, match=r"Bidirectional\.merge: .* found 'max'"):
        nn.Bidirectional(nn.GRU(4, 3), nn.GRU(4, 3), "max")
    with pytest.raises(SettingsError, match="steps: expected at least 1, found 0"):
        nn.RecurrentDecoder(nn.GRU(4, 4), 0)
    with pytest.raises(ShapeError, match=r"RecurrentDecoder: .* \(N, in\), found \(2, 5, 4\)"):
        nn.RecurrentDecoder(nn.GRU(4, 4), 2)(X)
    with pytest.raises(ShapeError, match=r"TimeDistributed: .* found \(2, 5\)"):
        nn.TimeDistributed(nn.ReLU())(X[..., 0])
