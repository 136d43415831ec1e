"""Convolutions in inference, finished by bias, residual and limits, and whole bottlenecks."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution import bfloat16, bottleneck, conv2d
from daskdl.kernels.convolution.bottleneck import Bottleneck, serves
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.products.bfloat16 import along
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget

#: Channels, filters, kernel, stride, groups, side; the way, and whether neighbours are joined.
SHAPES = [
    ((64, 96, 1, 1, 1, 9), "pointwise", False),
    ((300, 60, 1, 1, 1, 9), "pointwise", False),  # two slices of summands, a narrow last panel
    ((16, 40, 1, 1, 1, 7), "pointwise", False),  # half of a last panel
    ((1024, 40, 1, 1, 1, 3), "pointwise", False),  # pixels of whole pages
    ((16, 40, 3, 2, 1, 9), "direct", False),
    ((32, 32, 3, 1, 4, 9), "direct", False),
    ((40, 72, 3, 1, 1, 14), "winograd", False),
    ((16, 24, 5, 1, 1, 11), "winograd", False),
    ((3, 20, 7, 2, 1, 32), "few_channels", False),
    ((35, 35, 3, 2, 35, 14), "depthwise", False),
    ((16, 3, 3, 1, 1, 20), "direct", True),
    ((16, 3, 3, 1, 1, 23), "direct", True),  # windows do not come out even
    ((64, 96, 1, 1, 1, 9), "bf16-pairs", False),
    ((64, 96, 1, 1, 1, 17), "bf16-pairs", False),  # more rows than share the weights
    ((33, 40, 1, 2, 1, 9), "bf16-pairs", False),  # an odd channel, half of a last panel
    ((600, 50, 1, 1, 1, 13), "bf16-pairs", False),  # two slices of summands
    ((2048, 200, 1, 1, 1, 11), "bf16-pairs", False),  # weights that do not stay in L2
    ((300, 32, 3, 2, 1, 9), "bf16-pairs", False),  # several taps between sums that go to memory
    ((600, 32, 3, 2, 1, 9), "bf16-pairs", False),  # and several such sums for a tap
    ((16, 16, 2, 2, 1, 6), "bf16-pairs", False),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "way", "together"), SHAPES)
@pytest.mark.parametrize("residual", [False, True])
def test_results_are_finished_and_have_the_bits_of_any_batch(shape, way, together, residual):
    channels, filters, k, stride, groups, side = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((13, side, side, channels)).astype(np.float32)
    weight = rng.standard_normal((filters, k, k, channels // groups)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    geometry = Geometry((k, k), (stride, stride), (k // 2,) * 4, (1, 1), groups)
    pairs = way == "bf16-pairs"
    if pairs:
        convolved = bfloat16.forward(along(x), weight, geometry, (side, side))
    else:
        convolved = conv2d.forward(x, weight, geometry)
    residual = rng.standard_normal(convolved.shape).astype(np.float32) if residual else None

    with computing_in("bf16-pairs" if pairs else "float32"):
        conv = Convolution(weight, bias, geometry, convolved.shape[2])
    assert (conv.way, conv.together > 1) == (way, together)
    result = conv(x, residual, 0, 6)
    expected = np.clip(convolved + bias + (0 if residual is None else residual), 0, 6)
    tolerance = 0 if pairs else 1e-6 * np.abs(convolved).max()
    np.testing.assert_allclose(result, expected, atol=tolerance, rtol=0)
    for start, stop, threads in ((0, 1, 1), (4, 5, 2), (2, 13, 2)):
        part = None if residual is None else residual[start:stop]
        with thread_budget(threads):
            np.testing.assert_array_equal(conv(x[start:stop], part, 0, 6), result[start:stop])


@pytest.mark.slow
def test_nan_passes_limits():
    x = np.full((1, 3, 3, 8), np.nan, np.float32)
    conv = Convolution(np.ones((40, 1, 1, 8), np.float32), None, Geometry((1, 1)), 3)
    assert np.isnan(conv(x, None, 0, 6)).all()


def test_no_images_have_no_results():
    conv = Convolution(np.ones((5, 3, 3, 8), np.float32), None, Geometry((3, 3)), 2)
    assert conv(np.zeros((0, 4, 4, 8), np.float32)).shape == (0, 2, 2, 5)


@pytest.mark.parametrize(("filters", "pad"), [(24, 1), (32, 0)])
def test_images_of_few_channels_may_lie_in_any_order(filters, pad):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 20, 17)).astype(np.float32).transpose(0, 2, 3, 1)
    weight = rng.standard_normal((filters, 3, 3, 3)).astype(np.float32)
    conv = Convolution(weight, None, Geometry((3, 3), (2, 2), (pad,) * 4), 9)
    assert conv.any_order
    np.testing.assert_array_equal(conv(x, None, 0), conv(np.ascontiguousarray(x), None, 0))


rng = np.random.default_rng(0)


def convolution(filters, channels, size, kernel=1, stride=1, pad=0, groups=1, dilation=1):
    geometry = Geometry((kernel,) * 2, (stride,) * 2, (pad,) * 4, (dilation,) * 2, groups)
    weight = rng.standard_normal((filters, kernel, kernel, channels // groups), np.float32)
    bias = rng.standard_normal(filters, np.float32)
    return Convolution(weight, bias, geometry, geometry.size(size, size)[1])


@pytest.mark.slow
@pytest.mark.parametrize("room", [9_000, 24_000, 400_000])
@pytest.mark.parametrize(
    ("n", "size", "channels", "inside", "out", "kernel", "stride", "pad", "dilation"),
    [
        (2, 14, 7, 23, 7, 3, 1, 1, 1),
        (3, 13, 8, 24, 5, 3, 2, 1, 1),
        (1, 12, 0, 40, 35, 3, 1, 1, 1),
        (2, 11, 5, 17, 5, 5, 1, 2, 1),
        (1, 12, 5, 17, 5, 3, 1, 0, 2),
        (2, 12, 5, 17, 5, 2, 3, 0, 1),
        (1, 6, 5, 17, 5, 3, 1, 4, 1),
    ],
)
def test_a_bottleneck_has_the_bits_of_its_convolutions(
    n, size, channels, inside, out, kernel, stride, pad, dilation, room, monkeypatch
):
    monkeypatch.setattr(bottleneck, "ROOM", room)
    monkeypatch.setattr(bottleneck, "STAYS", 0)
    expand = convolution(inside, channels, size) if channels else None
    middle = convolution(inside, inside, size, kernel, stride, pad, inside, dilation)
    rows = middle.geometry.size(size, size)[0]
    project = convolution(out, inside, rows)
    x = rng.standard_normal((n, size, size, channels or inside), np.float32)
    residual = rng.standard_normal((n, rows, rows, out), np.float32) if stride == 1 else None
    wide = x if expand is None else expand(x, None, 0, 6)
    expected = project(middle(wide, None, -1, 4), residual, -3.0, 3.0)
    for n_threads in (1, 2):
        with thread_budget(n_threads):
            if serves(expand, middle, project, x.shape):
                block = Bottleneck(expand, middle, project, (0, 6), (-1, 4))
                np.testing.assert_array_equal(block(x, residual, -3.0, 3.0), expected)
            else:
                assert room == 9_000  # not even one row fits


def test_bottlenecks_serve_large_images_between_few_channels():
    expand, project = convolution(96, 16, 32), convolution(24, 96, 32)
    middle = convolution(96, 96, 32, 3, 1, 1, 96)
    assert serves(expand, middle, project, (1, 32, 32, 16))
    assert not serves(expand, middle, project, (1, 16, 16, 16))  # stays in L2 anyway
    assert not serves(expand, convolution(96, 96, 32, 3, 1, 1), project, (1, 32, 32, 16))
    large = convolution(1000, 96, 32)
    assert not serves(expand, middle, convolution(2000, 96, 32), (1, 32, 32, 16))
    assert serves(expand, middle, large, (1, 32, 32, 16))
