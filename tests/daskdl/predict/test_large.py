"""The shape of a large sample's result is derived from small images, or not at all."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.models import UNet
from daskdl.predict import Predictor
from daskdl.predict.scenes.windows import result_of_large


def derived(model: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    result = result_of_large(Predictor(model, threads=1), shape, np.float32)
    return None if result is None else result.shape[1:]


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 7, 32])
@pytest.mark.parametrize("height", [4000, 4001, 5413])
def test_strides_are_derived(stride, height):
    model = nn.Conv2d(3, 7, (5, 1), stride=stride)
    shape = (height - 5) // stride + 1, (6007 - 1) // stride + 1, 7
    assert derived(model, (height, 6007, 3)) == shape


def test_networks_that_pad_and_upsample_are_derived():
    assert derived(UNet(1, 4, (2, 4)), (4000, 5004, 1)) == (4000, 5004, 4)


def test_a_result_of_all_cells_and_a_small_sample_are_not_derived():
    model = nn.Sequential(nn.Conv2d(3, 2, 3), nn.GlobalAvgPool())
    assert derived(model, (4000, 5000, 3)) is None
    assert derived(nn.Conv2d(3, 2, 3), (100, 200, 3)) is None


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
