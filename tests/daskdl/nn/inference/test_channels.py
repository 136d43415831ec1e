"""Channels in inference: joined, shuffled and split, with the numbers of the operations."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.kernels.vectors import embedding as joining
from daskdl.nn import BatchNorm, Conv2d, Module
from daskdl.nn.inference import Inference
from daskdl.tensor import no_grad
from tests.daskdl.gradients import as_tuple

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)


class Shuffled(Module):
    """Two convolutions in PyTorch's order of axes, whose channels ``use`` shuffles and reads."""

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


def check(model, x):
    """Check that a model, its program and the program's layout give the operations' numbers."""
    with no_grad():
        wanted = as_tuple(model.eval()(x))
    inference = Inference(model)
    for _ in range(3):
        for actual, expected in zip(inference.run(model, x), wanted, strict=True):
            assert actual.shape == expected.shape
            atol = 2e-6 * np.abs(expected.data).max(initial=0.5)
            np.testing.assert_allclose(actual, expected.data, rtol=0, atol=atol)


USES = [_split, _split_unevenly, _sliced, _whole, _again, _each_step_is_used, _another_order]


@pytest.mark.parametrize("use", USES)
def test_shuffled_channels_have_the_operations_numbers(use):
    check(Shuffled(use), np.random.default_rng(0).random((3, 5, 4, 3), np.float32))


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


class Joined(Module):
    """Convolutions whose channels ``use`` joins and reads."""

    def __init__(self, use, wide=32):
        self._use = use
        self.enter = Conv2d(3, wide, 3, padding=1, seed=0)
        self.more = Conv2d(wide, 16, 3, padding=1, seed=1)
        self.norm = settled_norm(wide + 16)
        self.last = Conv2d(wide + 16, 8, 1, seed=2)
        self.wide_norm = settled_norm(wide + 32)
        self.wide_last = Conv2d(wide + 32, 8, 1, seed=3)

    def forward(self, x):
        return self._use(self, ops.relu(self.enter(x)))


def settled_norm(channels):
    norm, rng = BatchNorm(channels), np.random.default_rng(channels)
    for tensor, low in ((norm.running_variance, 0.5), (norm.running_mean, -0.5), (norm.weight, -1)):
        tensor.data[:] = rng.uniform(low, 1.5, channels)
    return norm


def _squeezed(m, x):
    return m.last(ops.concatenate(x, m.more(x)))


def _pooled(m, x):
    joined = ops.max_pool2d(ops.concatenate(x, m.more(x)), kernel_size=(3, 3), stride=(2, 2))
    return m.last(joined)


def _normed(m, x):
    return m.last(ops.relu(m.norm(ops.concatenate(x, m.more(x)))))


def _denser(m, x):
    joined = ops.concatenate(x, m.more(x))
    return m.wide_last(ops.relu(m.wide_norm(ops.concatenate(joined, m.more(ops.relu(x))))))


def _read_twice(m, x):
    joined = ops.concatenate(x, m.more(x))
    return m.last(joined), ops.relu(joined), m.last(ops.relu(m.norm(joined)))


def _normed_and_read(m, x):
    joined = ops.relu(m.norm(ops.concatenate(x, m.more(x))))
    return m.last(joined), joined * 2.0


def _never_a_convolution(m, x):
    joined = ops.concatenate(x, m.more(x))
    return ops.global_avg_pool2d(ops.relu(m.norm(joined))), ops.concatenate(joined, x)[..., 30:40]


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [_squeezed, _pooled, _normed, _denser, _read_twice, _normed_and_read, _never_a_convolution],
)
@pytest.mark.parametrize("wide", [32, 40])  # 40 channels are not gathered
def test_joined_channels_have_the_operations_numbers(use, wide):
    check(Joined(use, wide), np.random.default_rng(0).standard_normal((3, 9, 8, 3), np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("use", [_squeezed, _pooled, _normed, _denser])
def test_channels_for_one_convolution_are_never_joined_in_memory(use, monkeypatch):
    joined = []
    monkeypatch.setattr("daskdl.nn.inference.channels.side_by_side", joined.append)
    model = Joined(use).eval()
    Inference(model).run(model, np.zeros((1, 9, 8, 3), np.float32))
    assert not joined


class Scalar(Module):
    """The mean of the input, as an array of one number and then as a scalar."""

    def forward(self, x):
        one = ops.reshape(ops.mean(x), shape=(1,))
        return ops.reshape(ops.concatenate(one), shape=())


def test_one_number_may_be_joined_to_nothing_and_lose_its_axis():
    (result,) = Inference(Scalar()).run(Scalar(), np.ones((1, 3), np.float32))
    assert (result.shape, float(result)) == ((), 1.0)
