"""Convolutions of inference in bfloat16: the bits of training's, of any batch and any threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution import bfloat16
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.products.affine import Affine
from daskdl.kernels.products.bfloat16 import along
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget

#: Channels, filters, kernel, stride, padding, side, images.
SHAPES = [
    (64, 96, 1, 1, 0, 9, 5),
    (64, 96, 1, 1, 0, 17, 5),  # more rows than threads share the weights of
    (33, 40, 1, 2, 0, 9, 5),  # an odd channel, half of a last panel, strides
    (600, 50, 1, 1, 0, 13, 5),  # two slices of summands
    (2048, 200, 1, 1, 0, 11, 5),  # weights that do not stay in L2
    (40, 72, 3, 2, 1, 14, 5),
    (300, 32, 3, 2, 1, 9, 2),  # several taps between sums that go to memory
    (600, 32, 3, 2, 1, 9, 2),  # and several of those for a tap
    (16, 16, 2, 2, 0, 6, 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("residual", [False, True])
def test_bits_of_training_in_any_batch(shape, residual):
    channels, filters, k, stride, pad, side, images = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((images, side, side, channels)).astype(np.float32)
    weight = rng.standard_normal((filters, k, k, channels)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    geometry = Geometry((k, k), (stride, stride), (pad,) * 4)
    plain = bfloat16.forward(along(x), weight, geometry, x.shape[1:3])
    beside = rng.standard_normal(plain.shape).astype(np.float32) if residual else None
    expected = np.clip(plain + bias + (0 if beside is None else beside), 0, 6)

    with computing_in("bf16-pairs"):
        made = Convolution(weight, bias, geometry, plain.shape[2])
    np.testing.assert_array_equal(made(x, beside, 0, 6), expected)
    for start, stop, threads in ((0, 1, 1), (1, 2, 2), (0, images, 2)):
        part = None if beside is None else beside[start:stop]
        with thread_budget(threads):
            np.testing.assert_array_equal(made(x[start:stop], part, 0, 6), expected[start:stop])


@pytest.mark.parametrize(("features", "results"), [(64, 96), (771, 33), (16, 200)])
def test_rows_of_affine_maps_have_the_same_bits_beside_any_others(features, results):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((700, features)).astype(np.float32)
    weight = rng.standard_normal((results, features)).astype(np.float32)
    with computing_in("bf16-pairs"):
        made = Affine(weight)
    whole = made(x)
    np.testing.assert_allclose(whole, x @ weight.T, atol=0.01 * np.abs(whole).max())
    for start, stop in ((0, 1), (5, 12), (20, 35), (40, 300)):
        for threads in (1, 2):
            with thread_budget(threads):
                np.testing.assert_array_equal(made(x[start:stop]), whole[start:stop])
