"""Depthwise sums: channels in vectors of all lengths, pixels that no tap sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from daskdl.kernels.convolution import depthwise
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import correlate, correlate_weight_gradient

pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))


@pytest.mark.slow
@given(
    kernel=pairs,
    stride=pairs,
    dilation=pairs,
    pad=st.tuples(*[st.integers(0, 3)] * 4),
    channels=st.sampled_from([1, 2, 7, 8, 13, 32, 45, 100]),
    more=pairs,
    threads=st.sampled_from([1, 2]),
)
def test_three_passes(kernel, stride, dilation, pad, channels, more, threads):
    geometry = Geometry(kernel, stride, pad, dilation, channels)
    shape = (2, geometry.reach[0] + more[0], geometry.reach[1] + more[1], channels)
    rng = np.random.default_rng(channels)
    x, weight = rng.normal(size=shape), rng.normal(size=(channels, *kernel, 1))
    expected = correlate(x, weight, geometry)
    dy = rng.normal(size=expected.shape)
    with thread_budget(threads):
        y = np.full(expected.shape, np.nan)
        depthwise.forward(x, weight, geometry, y, False)
        np.testing.assert_allclose(y, expected, atol=1e-12)
        depthwise.forward(x, weight, geometry, y, True)
        np.testing.assert_allclose(y, 2 * expected, atol=1e-12)
        dw = depthwise.weight_gradient(x, dy, geometry)
        np.testing.assert_allclose(dw, correlate_weight_gradient(x, dy, geometry), atol=1e-11)
        dx = np.full(shape, np.nan)
        depthwise.input_gradient(dy, weight, geometry, dx)
        for other in (x, x**2):
            left, right = (dx * other).sum(), (dy * correlate(other, weight, geometry)).sum()
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@given(
    pad=st.tuples(*[st.integers(0, 3)] * 4),
    channels=st.sampled_from([16, 48, 96, 128]),
    more=pairs,
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_gradients_to_3x3_weights(pad, channels, more, dtype):
    geometry = Geometry((3, 3), (1, 1), pad, (1, 1), channels)
    shape = (2, max(1, 2 + more[0] - pad[0]), max(1, 2 + more[1] - pad[2]), channels)
    rows, columns = (shape[1] + sum(pad[:2]) - 2, shape[2] + sum(pad[2:]) - 2)
    assume(min(rows, columns) > 0)
    rng = np.random.default_rng(channels)
    x = rng.normal(size=shape).astype(dtype)
    dy = rng.normal(size=(2, rows, columns, channels)).astype(dtype)
    found = []
    for threads in (1, 2):
        with thread_budget(threads):
            found.append(depthwise.weight_gradient(x, dy, geometry))
    np.testing.assert_array_equal(*found)
    wanted = correlate_weight_gradient(x.astype("f8"), dy.astype("f8"), geometry)
    np.testing.assert_allclose(found[0], wanted, rtol=0, atol=3e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("stride", [1, 2])
def test_bits_do_not_depend_on_threads(stride):
    geometry = Geometry((3, 3), (stride, stride), (1,) * 4, groups=40)
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=s).astype("f4") for s in ((3, 16, 17, 40), (40, 3, 3, 1)))
    results = []
    for n in (1, 2, 3):
        y = np.empty((3, *geometry.size(16, 17), 40), np.float32)
        with thread_budget(n):
            depthwise.forward(x, weight, geometry, y, False)
            results.append((y, depthwise.weight_gradient(x, y, geometry)))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0][0], other[0])
        np.testing.assert_array_equal(results[0][1], other[1])
