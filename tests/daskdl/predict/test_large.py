"""The shape of a large sample's result is derived from small samples, or not at all."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.predict.kinds import PERIOD, result_of_large


def derived(out: object, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the derived shape for a model whose results have the shape ``out(shape)``."""
    sizes = []

    def passed(x: np.ndarray) -> np.ndarray:
        sizes.append(x.size)
        return np.zeros(out(x.shape), np.float32)  # type: ignore[operator]

    result = result_of_large(passed, shape, np.uint8)
    assert max(sizes, default=0) < max(np.prod(shape) / 4, 1_000_000)
    return None if result is None else result.shape[1:]


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 6, 8, 16, 32])
@pytest.mark.parametrize("height", [4000, 4001, 5413])
def test_convolutions_of_usual_strides_are_derived(stride, height):
    def out(shape):
        n, y, x, _ = shape
        return n, (y - 5) // stride + 1, (x - 1) // stride + 1, 7

    shape = (1, height, 6007, 3)
    assert derived(out, shape) == out(shape)[1:]


@pytest.mark.parametrize("stride", [7, 9, 11, 64])
def test_other_strides_are_derived_or_need_a_whole_sample(stride):
    for height in range(4000, 4080):
        shape = (1, height, 7, 3)

        def out(s):
            return s[0], s[1] // stride, s[2], 1

        assert derived(out, shape) in (None, out(shape)[1:])


def test_reduced_axes_are_derived_and_joined_ones_are_not():
    shape = (1, 4000, 5000, 3)
    assert derived(lambda s: (s[0], 10), shape) == (10,)
    assert derived(lambda s: (s[0], s[1], s[2] * 2, 1), shape) == (4000, 10000, 1)
    assert derived(lambda s: (s[0], s[1] * s[2], 8), shape) is None  # tokens
    assert derived(lambda s: (s[0], PERIOD, 3), (1, 100, 200, 3)) is None  # small: tried whole


def test_a_scene_is_not_tried_whole(monkeypatch):
    largest = []
    forward = nn.AvgPool2d.forward
    model = nn.Sequential(nn.AvgPool2d(4))

    def watched(self, x):
        largest.append(np.size(x))
        return forward(self, x)

    monkeypatch.setattr(nn.AvgPool2d, "forward", watched)
    scene = da.zeros((1, 4801, 4400, 1), chunks=(1, 500, 500, 1), dtype="float32")
    lazy = model.predict(scene)
    assert lazy.shape == (1, 1200, 1100, 1)
    assert max(largest) < 4801 * 4400 / 10


def test_a_result_of_another_shape_than_of_zeros_is_refused():
    class Counted(nn.Module):
        def forward(self, x):
            return x[:, : 1 + int(np.any(np.asarray(x)))]  # type: ignore[index]

    x = da.ones((4, 3), chunks=2, dtype="float32")
    with pytest.raises(ShapeError, match=r"partition \d.*shape \(1,\).*as of zeros.*found \(2,\)"):
        Counted().predict(x).compute(scheduler="sync")
