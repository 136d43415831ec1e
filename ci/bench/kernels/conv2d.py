"""Convolutions of ResNet-50, Inception-v1, VGG, ConvLSTM and MobileNet, each pass by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ci.bench.timing import Case
from daskdl.kernels.convolution import conv2d as kernel
from daskdl.kernels.convolution.geometry import Geometry


class Shape(NamedTuple):
    """A layer: side of the square image, channels in and out, kernel, stride, images."""

    net: str
    side: int
    channels: int
    filters: int
    kernel: int
    stride: int = 1
    images: int = 4
    groups: int = 1


SHAPES = (
    # 3x3 and 5x5 at stride 1
    Shape("resnet", 56, 64, 64, 3),
    Shape("resnet", 28, 128, 128, 3),
    Shape("resnet", 14, 256, 256, 3),
    Shape("resnet", 7, 512, 512, 3),
    Shape("vgg", 112, 128, 128, 3, images=1),
    Shape("vgg", 28, 512, 512, 3, images=2),
    Shape("inception", 28, 96, 128, 3),
    Shape("inception", 14, 160, 320, 3),
    Shape("inception", 28, 16, 32, 5),
    Shape("inception", 14, 32, 128, 5),
    Shape("convlstm", 64, 64, 256, 3, images=2),
    Shape("convlstm", 64, 64, 256, 5, images=2),
    # all others
    Shape("resnet", 224, 3, 64, 7, 2, images=2),
    Shape("vgg", 224, 3, 64, 3, images=1),
    Shape("resnet", 56, 64, 256, 1),
    Shape("resnet", 14, 1024, 256, 1),
    Shape("resnet", 7, 512, 2048, 1),
    Shape("resnet", 56, 128, 128, 3, 2),
    Shape("resnet", 14, 512, 512, 3, 2),
    Shape("resnet", 56, 256, 512, 1, 2),
    Shape("inception", 28, 192, 64, 1),
    Shape("inception", 14, 480, 192, 1),
    Shape("mobilenet", 56, 128, 128, 3, groups=128),
    Shape("mobilenet", 56, 128, 128, 3, 2, groups=128),
)


def cases() -> Iterator[Case]:
    """Yield forward, gradient to the input (except in first layers) and to the weights."""
    for shape in SHAPES:
        yield from _passes(shape)


def _passes(shape: Shape) -> Iterator[Case]:
    import torch

    rng = np.random.default_rng(0)
    k, half = shape.kernel, shape.kernel // 2
    geometry = Geometry(
        (k, k), (shape.stride, shape.stride), (half, half, half, half), groups=shape.groups
    )
    x = rng.standard_normal((shape.images, shape.side, shape.side, shape.channels), np.float32)
    w = rng.standard_normal((shape.filters, k, k, shape.channels // shape.groups), np.float32)
    size = geometry.size(shape.side, shape.side)
    dy = rng.standard_normal((shape.images, *size, shape.filters), np.float32)
    tensors = [torch.from_numpy(a).permute(0, 3, 1, 2) for a in (x, w, dy)]
    formats = {
        "channels last": [t.contiguous(memory_format=torch.channels_last) for t in tensors],
        "contiguous": [t.contiguous() for t in tensors],
    }

    def peers(function: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
        return {layout: partial(function, *some) for layout, some in formats.items()}

    def torch_forward(x: Any, w: Any, dy: Any) -> Any:
        return torch.conv2d(x, w, None, shape.stride, half, 1, shape.groups)

    def torch_backward(mask: list[bool]) -> Callable[..., Any]:
        arguments = [shape.stride] * 2, [half] * 2, [1, 1], False, [0, 0], shape.groups, mask
        return lambda x, w, dy: torch.ops.aten.convolution_backward(dy, x, w, None, *arguments)

    dense = shape.groups == 1 and shape.channels > 3
    family = "conv 3x3 5x5" if k in (3, 5) and shape.stride == 1 and dense else "conv"
    stride = f"/{shape.stride}" if shape.stride > 1 else ""
    name = (
        f"{family}/{shape.net}{' depthwise' if shape.groups > 1 else ''} "
        f"{k}x{k}{stride} {shape.channels}->{shape.filters} "
        f"@{shape.side} b{shape.images}"
    )
    yield Case(f"{name}/forward", lambda: kernel.forward(x, w, geometry), peers(torch_forward))
    if shape.channels > 3:
        yield Case(
            f"{name}/to input",
            lambda: kernel.input_gradient(dy, w, geometry, shape.side, shape.side),
            peers(torch_backward([True, False, False])),
        )
    yield Case(
        f"{name}/to weights",
        lambda: kernel.weight_gradient(x, dy, geometry),
        peers(torch_backward([False, True, False])),
    )
