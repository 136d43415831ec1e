"""Pooling of ResNet-50, Inception-v1 and LeNet: forward, backward and both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ci.bench.kernels_norm import image, passes
from ci.bench.timing import Case
from daskdl import ops

#: Images, size of a window, stride and padding.
WINDOWS = (
    ((8, 112, 112, 64), 3, 2, 1),
    ((8, 28, 28, 192), 3, 1, 1),
    ((8, 56, 56, 64), 2, 2, 0),
)
GLOBAL = ((8, 7, 7, 2048), (8, 7, 7, 1024))


def cases() -> Iterator[Case]:
    """Yield maxima and means over windows and over whole images."""
    from torch.nn import functional as peer

    def pair(name: str, window: tuple[int, int, int]) -> tuple[Callable[..., Any], ...]:
        size, stride, pad = window
        ours, theirs = getattr(ops, name), getattr(peer, name)
        return (
            lambda x: ours(
                x, kernel_size=(size, size), stride=(stride, stride), pad=(pad, pad, pad, pad)
            ),
            lambda x: theirs(x, size, stride, pad),
        )

    for name, label in (("max_pool2d", "maxima"), ("avg_pool2d", "means")):
        for shape, *window in WINDOWS:
            size, stride, _ = window
            title = f"pooling/{label} {size}x{size}/{stride} {image(shape)}"
            yield from passes(title, *pair(name, tuple(window)), [shape])
    for shape in GLOBAL:
        yield from passes(
            f"pooling/global means {image(shape)}",
            ops.global_avg_pool2d,
            lambda x: x.mean((2, 3)),
            [shape],
        )
        yield from passes(
            f"pooling/global maxima {image(shape)}",
            ops.global_max_pool2d,
            lambda x: peer.adaptive_max_pool2d(x, 1).flatten(1),
            [shape],
        )
