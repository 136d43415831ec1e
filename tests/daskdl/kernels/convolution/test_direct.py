"""Direct products: blocks of pixels, few channels, groups; conv2d's tests cover shapes."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution import direct
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.microkernel import COLUMNS, DEPTH
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import correlate, correlate_weight_gradient

PLAIN = Geometry((3, 3), (2, 2), (1,) * 4)

CASES = [
    # more pixels than a block has, deeper than one sum, more than one panel
    (PLAIN, (2, 33, 35, DEPTH + 5), COLUMNS + 3),
    (Geometry((7, 7), (2, 2), (3,) * 4), (2, 40, 37, 3), COLUMNS),  # a network's first layer
    (Geometry((1, 1), (2, 2)), (2, 9, 8, 40), 2 * COLUMNS),  # three of four pixels are not seen
    (Geometry((2, 2), (3, 3)), (1, 11, 10, 20), 5),  # some pixels are not seen
    (PLAIN._replace(groups=4), (2, 9, 8, 12), 8),
    (Geometry((3, 3), (1, 1), (2,) * 4, (2, 2)), (1, 9, 9, 20), COLUMNS),
    (Geometry((1, 1), (1, 1)), (1, 1, 1, 1), 1),
]


@pytest.mark.parametrize(("geometry", "shape", "filters"), CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_three_passes(geometry, shape, filters, threads):
    rng = np.random.default_rng(filters)
    x = rng.normal(size=shape)
    weight = rng.normal(size=(filters, *geometry.kernel, shape[3] // geometry.groups))
    expected = correlate(x, weight, geometry)
    dy = rng.normal(size=expected.shape)
    with thread_budget(threads):
        y = np.full(expected.shape, np.nan)
        direct.forward(x, weight, geometry, y, False)
        np.testing.assert_allclose(y, expected, atol=1e-10)
        direct.forward(x, weight, geometry, y, True)
        np.testing.assert_allclose(y, 2 * expected, atol=1e-10)
        dw = direct.weight_gradient(x, dy, geometry)
        np.testing.assert_allclose(dw, correlate_weight_gradient(x, dy, geometry), atol=1e-9)
        dx = np.full_like(x, np.nan)
        direct.input_gradient(dy, weight, geometry, dx)
        np.testing.assert_allclose((dx * x).sum(), (dy * expected).sum(), rtol=1e-9)
        np.testing.assert_allclose(
            (dx * x**2).sum(), (dy * correlate(x**2, weight, geometry)).sum(), rtol=1e-9
        )


def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=s).astype("f4") for s in ((3, 23, 21, 24), (40, 3, 3, 24)))
    results = []
    for n in (1, 2, 3):
        y = np.empty((3, 12, 11, 40), np.float32)
        dx = np.empty_like(x)
        with thread_budget(n):
            direct.forward(x, weight, PLAIN, y, False)
            direct.input_gradient(y, weight, PLAIN, dx)
            results.append((y, dx, direct.weight_gradient(x, y, PLAIN)))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
