"""Channels in inference: joined, shuffled and split by one kernel, with the operations' numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.kernels.vectors import joining
from daskdl.nn import Conv2d, Module
from daskdl.nn.inference import Inference
from daskdl.tensor import no_grad

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)


class Shuffled(Module):
    """Two convolutions whose channels are shuffled, in PyTorch's order of axes, and used so."""

    def __init__(self, use):
        self._use = use
        self.one, self.other = (Conv2d(3, 6, 3, padding=1, seed=i) for i in (0, 1))
        self.whole = Conv2d(12, 4, 1, seed=2)

    def forward(self, x):
        a, b = (ops.transpose(conv(x), axes=FIRST) for conv in (self.one, self.other))
        return self._use(self, a, b)


def shuffle(x):
    n, channels, rows, columns = x.shape
    x = ops.reshape(x, shape=(n, 2, channels // 2, rows, columns))
    x = ops.transpose(x, axes=(0, 2, 1, 3, 4))
    return ops.reshape(x, shape=(n, channels, rows, columns))


def _split(m, a, b):
    left, right = ops.split(shuffle(ops.concatenate(a, b, axis=1)), sizes=(4, 8), axis=1)
    return ops.transpose(left * left, axes=LAST), ops.relu(right)


def _split_unevenly(m, a, b):
    left, right = ops.split(shuffle(ops.concatenate(a, b, axis=1)), sizes=(5, 7), axis=1)
    return left, right


def _sliced(m, a, b):
    x = shuffle(ops.concatenate(a, b, axis=1))
    return x[:, :6], x[:, 6:], x[:, 3:], x[1:, 2:4], x[:, :, 1:], x[:, 4:4], x[:, ::2], x[:, 0]


def _whole(m, a, b):
    return m.whole(ops.transpose(shuffle(ops.concatenate(a, b, axis=1)), axes=LAST))


def _again(m, a, b):
    left, right = ops.split(shuffle(ops.concatenate(a, b, axis=1)), sizes=(6, 6), axis=1)
    return m.whole(ops.transpose(shuffle(ops.concatenate(left, right, axis=1)), axes=LAST))


def _each_step_is_used(m, a, b):
    joined = ops.concatenate(a, b, axis=1)
    n, channels, rows, columns = joined.shape
    groups = ops.reshape(joined, shape=(n, 2, channels // 2, rows, columns))
    turned = ops.transpose(groups, axes=(0, 2, 1, 3, 4))
    mixed = ops.reshape(turned, shape=(n, channels, rows, columns))
    left, right = ops.split(mixed, sizes=(6, 6), axis=1)
    return ops.relu(joined), groups + 1.0, turned * 2.0, mixed, ops.relu(mixed), left, right


def _another_order(m, a, b):
    x = ops.concatenate(a, b, axis=1)
    n, channels, rows, columns = x.shape
    three = ops.reshape(x, shape=(n, 3, channels // 3, rows, columns))
    two = ops.reshape(x, shape=(n, 2, channels // 2, rows, columns))
    turned = ops.transpose(two, axes=(0, 1, 2, 4, 3))
    return three, turned, ops.reshape(turned, shape=(n, channels, columns, rows))


USES = [_split, _split_unevenly, _sliced, _whole, _again, _each_step_is_used, _another_order]


@pytest.mark.parametrize("use", USES)
def test_numbers_are_the_operations(use):
    model, x = Shuffled(use).eval(), np.random.default_rng(0).random((3, 5, 4, 3), np.float32)
    with no_grad():
        wanted = model(x)
        wanted = [t.data for t in (wanted if isinstance(wanted, tuple) else (wanted,))]
    for _ in range(2):
        for found, expected in zip(Inference(model).run(model, x), wanted, strict=True):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def _halves(m, a, b):
    x = shuffle(ops.concatenate(a, b, axis=1))
    return x[:, :6], x[:, 6:]


@pytest.mark.parametrize(("use", "turns"), [(_split, 2), (_halves, 2), (_whole, 1), (_again, 3)])
def test_a_shuffle_is_one_pass_over_its_channels(use, turns, monkeypatch):
    joined, in_turns = [], []
    take_turns = joining.InTurns.__call__
    monkeypatch.setattr("daskdl.nn.inference.channels.side_by_side", joined.append)
    monkeypatch.setattr(
        joining.InTurns,
        "__call__",
        lambda self, a, b: (in_turns.append(self), take_turns(self, a, b))[1],
    )
    model, x = Shuffled(use).eval(), np.random.default_rng(0).random((3, 5, 4, 3), np.float32)
    Inference(model).run(model, x)
    assert not joined
    assert len(in_turns) == turns
