"""Three convolutions row by row: the bits of the three one after the other, on any threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution import bottleneck
from daskdl.kernels.convolution.bottleneck import Bottleneck, serves
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.runtime.threads import thread_budget

rng = np.random.default_rng(0)


def convolution(filters, channels, size, kernel=1, stride=1, pad=0, groups=1, dilation=1):
    geometry = Geometry((kernel,) * 2, (stride,) * 2, (pad,) * 4, (dilation,) * 2, groups)
    weight = rng.standard_normal((filters, kernel, kernel, channels // groups), np.float32)
    bias = rng.standard_normal(filters, np.float32)
    return Convolution(weight, bias, geometry, geometry.size(size, size)[1])


@pytest.mark.parametrize("n_threads", [1, 2])
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
def test_bits_are_those_of_the_convolutions(
    n, size, channels, inside, out, kernel, stride, pad, dilation, room, n_threads, monkeypatch
):
    monkeypatch.setattr(bottleneck, "ROOM", room)
    monkeypatch.setattr(bottleneck, "STAYS", 0)
    expand = convolution(inside, channels, size) if channels else None
    middle = convolution(inside, inside, size, kernel, stride, pad, inside, dilation)
    rows = middle.geometry.size(size, size)[0]
    project = convolution(out, inside, rows)
    x = rng.standard_normal((n, size, size, channels or inside), np.float32)
    beside = rng.standard_normal((n, rows, rows, out), np.float32) if stride == 1 else None
    with thread_budget(n_threads):
        if not serves(expand, middle, project, x.shape):
            assert room == 9_000  # not even one row finds room
            return
        made = Bottleneck(expand, middle, project, (0, 6), (-1, 4))
        found = made(x, beside, -3.0, 3.0)
        wide = x if expand is None else expand(x, None, 0, 6)
        expected = project(middle(wide, None, -1, 4), beside, -3.0, 3.0)
    np.testing.assert_array_equal(found, expected)


def test_it_serves_large_images_between_few_channels():
    expand, project = convolution(96, 16, 32), convolution(24, 96, 32)
    middle = convolution(96, 96, 32, 3, 1, 1, 96)
    assert serves(expand, middle, project, (1, 32, 32, 16))
    assert not serves(expand, middle, project, (1, 16, 16, 16))  # stays in L2 anyway
    assert not serves(expand, convolution(96, 96, 32, 3, 1, 1), project, (1, 32, 32, 16))
    large = convolution(1000, 96, 32)
    assert not serves(expand, middle, convolution(2000, 96, 32), (1, 32, 32, 16))
    assert serves(expand, middle, large, (1, 32, 32, 16))
