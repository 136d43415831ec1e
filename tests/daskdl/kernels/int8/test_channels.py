"""Passes over bytes with channels have the bits of the passes over floats that they replace."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.int8.channels import Rounding, widened
from daskdl.kernels.int8.scale import Scale, to_bytes, to_floats
from daskdl.kernels.norms.batchnorm import float_lanes, normalise
from daskdl.kernels.runtime.threads import thread_budget

ONE, OTHER, INTO = (
    Scale(float(np.float32(s)), z) for s, z in ((0.021, 3), (0.05, 128), (0.03, 77))
)


@pytest.mark.parametrize("scales", [(ONE,), (INTO,), (None,), (ONE, OTHER), (INTO, None, ONE)])
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("limits", [(-np.inf, np.inf), (0.0, np.inf), (-0.4, 1.1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_bytes_are_those_of_floats(scales, normed, limits, threads):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 256, (3, 70, 40, 5 + 40 * i), np.uint8) for i in range(len(scales))]
    parts = [x if s else x / np.float32(60) - 1 for x, s in zip(parts, scales, strict=True)]
    y = np.concatenate(
        [to_floats(x, *s) if s else x for x, s in zip(parts, scales, strict=True)], -1
    )
    lanes = None
    if normed:
        mean, scale, bias = rng.normal(size=(3, y.shape[-1]))
        scale[::2] *= 1e6  # near the first pixel's number, a second rounding changes the byte
        bias[::2] -= ((y[0, 0, 0] - mean) * scale)[::2]
        y, lanes = normalise(y, mean, scale, bias, False), float_lanes(mean, scale, bias)
    with thread_budget(threads):
        result = Rounding(scales, INTO, lanes, *limits)(*parts)
    np.testing.assert_array_equal(result, to_bytes(np.clip(y, *limits), *INTO))
    assert len(np.unique(result)) > 15


@pytest.mark.parametrize("shape", [(2, 5, 6, 3), (2, 5, 6, 58), (4, 30), (7, 4, 30)])
def test_widened_images_have_zeros_on_the_sides(shape):
    rng = np.random.default_rng(1)
    x, channels = rng.integers(0, 256, shape, np.uint8), -(-shape[-1] // 4) * 4
    expected = np.full((*shape[:-2], shape[-2] + 3, channels), 9, np.uint8)
    expected[..., 1:-2, : shape[-1]] = x
    np.testing.assert_array_equal(widened(x, channels, 1, 2, 9), expected)
    if len(shape) == 4:
        planes = np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        np.testing.assert_array_equal(widened(planes, channels, 1, 2, 9), expected)
