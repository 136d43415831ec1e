"""Layers over the steps of a sequence, and reductions of axes."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch

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


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match=r"Bidirectional\.merge: .* found 'max'"):
        nn.Bidirectional(nn.GRU(4, 3), nn.GRU(4, 3), "max")
    with pytest.raises(SettingsError, match="steps: expected at least 1, found 0"):
        nn.RecurrentDecoder(nn.GRU(4, 4), 0)
    with pytest.raises(ShapeError, match=r"RecurrentDecoder: .* \(N, in\), found \(2, 5, 4\)"):
        nn.RecurrentDecoder(nn.GRU(4, 4), 2)(X)
    with pytest.raises(ShapeError, match=r"TimeDistributed: .* found \(2, 5\)"):
        nn.TimeDistributed(nn.ReLU())(X[..., 0])


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min"])
def test_agrees_with_pytorch(name, axis, keepdims, torch):
    function = {"Max": "amax", "Min": "amin"}.get(name, name.lower())
    check_like_pytorch(
        torch,
        getattr(nn, name)(axis, keepdims),
        lambda x: getattr(torch, function)(x, axis, keepdim=keepdims),
        (2, 3, 4),
        channels=False,
    )


def test_several_axes(torch):
    check_like_pytorch(torch, nn.Mean((0, 2)), lambda x: x.mean((0, 2)), (2, 3, 4), channels=False)
