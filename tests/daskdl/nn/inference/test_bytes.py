"""Steps between int8 layers work on bytes, with the bits of the operations on floats."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.kernels.int8.scale import Scale
from daskdl.nn import BatchNorm, Linear, Module
from daskdl.nn.inference import Inference
from daskdl.nn.quantized import int8_of
from daskdl.tensor import no_grad
from tests.daskdl.nn.inference.networks import settled
from tests.daskdl.nn.inference.test_channels import FIRST, LAST, shuffle

ONE, OTHER, INTO = (
    Scale(float(np.float32(s)), z) for s, z in ((0.021, 90), (0.05, 128), (0.03, 77))
)


class Network(Module, pure=True):
    """Two int8 layers whose rounded results ``use`` reads before a third one."""

    def __init__(self, use):
        self._use = use
        self.one, self.other = (int8_of(Linear(3, 8, seed=i), *ONE) for i in (0, 1))
        self.norm, self.last = BatchNorm(16), int8_of(Linear(16, 5, seed=2), *INTO)

    def forward(self, x):
        x = rounded(x, ONE)
        a = ops.fake_quantize(self.one(x), of_x=ONE, alone=True)
        b = ops.fake_quantize(self.other(x), of_x=OTHER, alone=True)
        return self._use(self, a, b)


def rounded(x, scale=INTO):
    return ops.fake_quantize(x, of_x=scale, alone=True)


def _joined(m, a, b):
    return m.last(rounded(ops.concatenate(a, b)))


def _joined_in_planes(m, a, b):
    planes = (ops.transpose(x, axes=FIRST) for x in (a, b))
    return m.last(ops.transpose(rounded(ops.concatenate(*planes, axis=1)), axes=LAST))


def _joined_of_joined(m, a, b):
    joined = rounded(ops.concatenate(a, b), OTHER)
    whole = ops.concatenate(joined[..., :8], ops.concatenate(b, a))
    return m.last(rounded(joined)), whole


def _normed(m, a, b):
    joined = rounded(ops.concatenate(a, b), OTHER)
    return m.last(rounded(ops.relu(m.norm(joined)))), m.last(rounded(m.norm(joined)))


def _pooled(m, a, b):
    joined = rounded(ops.concatenate(a, b), OTHER)
    pooled = ops.max_pool2d(joined, kernel_size=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    return m.last(rounded(ops.relu(m.norm(pooled)))), m.last(rounded(pooled))


def _shuffled(m, a, b):
    """Channels are shuffled as in ShuffleNet, and read whole, split, and joined again."""
    planes = (ops.transpose(x, axes=FIRST) for x in (a, b))
    mixed = shuffle(rounded(ops.concatenate(*planes, axis=1), OTHER))
    left, right = ops.split(mixed, sizes=(6, 10), axis=1)
    again = shuffle(rounded(ops.concatenate(rounded(right, OTHER), left, axis=1), ONE))
    whole = (ops.transpose(rounded(x), axes=LAST) for x in (mixed, again))
    return tuple(m.last(x) for x in whole)


def _reshaped(m, a, b):
    joined = rounded(ops.concatenate(a, b), OTHER)
    n, rows, columns, channels = joined.shape
    return m.last(rounded(ops.reshape(joined, shape=(n, rows * columns, channels))))


def _averaged(m, a, b):
    joined = rounded(ops.concatenate(a, b), OTHER)
    return ops.avg_pool2d(joined, kernel_size=(2, 3), stride=(2, 2), pad=(1, 0, 1, 1))


def _summed(m, a, b):
    c = rounded(ops.relu(a + b), OTHER)
    return m.last(rounded(ops.concatenate(c, a)))


USES = [
    _averaged, _joined, _joined_in_planes, _joined_of_joined, _normed, _pooled, _reshaped,
    _shuffled, _summed,
]  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_bits_are_those_of_the_operations(use):
    model = settled(Network(use)).eval()
    x = np.random.default_rng(0).normal(size=(2, 9, 7, 3)).astype(np.float32)
    with no_grad():
        wanted = model(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    inference = Inference(model)
    for _ in range(3):
        for actual, expected in zip(inference.run(model, x), wanted, strict=True):
            np.testing.assert_array_equal(actual, expected.data)
    if use is not _joined_of_joined:
        names = steps_of(inference)
        assert names.count("to_bytes") == 1, names  # the input
        assert not {"to_floats", "side_by_side", "_normalise", "_plain"} & set(names)


def steps_of(inference):
    (program,) = inference._programs.values()
    return [getattr(s.function, "__name__", type(s.function).__name__) for s in program.steps]


class Attentive(Module, pure=True):
    """Three int8 layers read the same floats, as for queries, keys and values."""

    def __init__(self, scales):
        self.three = [int8_of(Linear(8, 8, seed=i), *scale) for i, scale in enumerate(scales)]

    def forward(self, x):
        y = ops.tanh(x)
        a, b, c = (layer(y) for layer in self.three)
        return a * b + c


@pytest.mark.parametrize(("scales", "times"), [((ONE, ONE, ONE), 1), ((ONE, INTO, ONE), 3)])
def test_floats_that_several_layers_read_are_rounded_once(scales, times):
    model = Attentive(scales).eval()
    x = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    with no_grad():
        expected = model(x).data
    inference = Inference(model)
    for _ in range(3):
        np.testing.assert_array_equal(inference.run(model, x)[0], expected)
    assert steps_of(inference).count("to_bytes") == times
