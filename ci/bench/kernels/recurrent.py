"""Recurrent layers, forward and backward with gradients to the input and to all weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ci.bench.kernels import peers
from ci.bench.timing import Case
from daskdl import ops
from daskdl.tensor import Tensor


class Shape(NamedTuple):
    """A layer: samples, steps, numbers in a step, numbers in the state."""

    samples: int
    steps: int
    features: int
    channels: int


SHAPES = (
    Shape(128, 200, 200, 128),
    Shape(32, 50, 64, 64),
    Shape(16, 100, 256, 512),
)
#: Classes of PyTorch.
LAYERS = ("LSTM", "GRU", "RNN")


def cases() -> Iterator[Case]:
    """Yield each layer in each shape, then a bidirectional one and the convolutional ones."""
    for layer in LAYERS:
        for shape in SHAPES:
            yield _layer(layer, shape)
    yield _layer("LSTM", SHAPES[0], ways=2)
    for steps in (1, 5):
        yield _convlstm(2, steps, 64, 64)
    yield _trajgru(2, 3, 32, 32, 5)


def leaf(array: np.ndarray) -> Tensor:
    """Return a tensor whose gradient is wanted."""
    return Tensor(array, requires_grad=True)


def _layer(layer: str, shape: Shape, ways: int = 1) -> Case:
    """Return the case of a layer of PyTorch's class; with two ways it is bidirectional."""
    import torch

    n, steps, features, channels = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, steps, features), np.float32)
    dy = rng.standard_normal((n, steps, ways * channels), np.float32)
    model = getattr(torch.nn, layer)(features, channels, batch_first=True, bidirectional=ways == 2)
    their_x, their_dy = torch.tensor(x, requires_grad=True), torch.tensor(dy)
    ours, weights = leaf(x), [leaf(p.detach().numpy().copy()) for p in model.parameters()]
    start = [None, None] if layer == "LSTM" else [None]
    # PyTorch's LSTM and RNN have two biases, which it adds.
    last = {"LSTM": [None], "GRU": [weights[3]], "RNN": []}[layer]
    operation = getattr(ops, layer.lower())

    def run() -> None:
        if ways == 1:
            y = operation(ours, *start, *weights[:3], *last)
        else:
            each = [(*start, *weights[i : i + 3], *last) for i in (0, 4)]
            y = ops.bidirectional(operation, ours, *each)
        y[0].backward(dy)

    both = "bidirectional " if ways == 2 else ""
    name = f"recurrent/{both}{layer} {n}x{steps}x{features}->{channels}"
    return Case(name, run, {"torch.nn": lambda: model(their_x)[0].backward(their_dy)})


def _convlstm(n: int, steps: int, side: int, channels: int) -> Case:
    image, filters = (n, side, side, channels), (4 * channels, 3, 3, channels)
    shapes = [(n, steps, *image[1:]), image, image, filters, filters, filters[:1]]
    name = f"ConvLSTM {n}x{steps}x{side}x{side}x{channels}"
    return _images_case(name, lambda *a: ops.convlstm(*a)[0], peers.convlstm, shapes)


def _trajgru(n: int, steps: int, side: int, channels: int, links: int) -> Case:
    image, hidden = (n, side, side, channels), 32
    shapes = [
        *((n, steps, *image[1:]), image, (3 * channels, 3, 3, channels)),
        *((3 * channels, links * channels), (3 * channels,), (3 * channels,)),
        *((hidden, 5, 5, channels), (hidden, 5, 5, channels), (hidden,)),
        *((2 * links, 5, 5, hidden), (2 * links,)),
    ]
    name = f"TrajGRU {n}x{steps}x{side}x{side}x{channels} {links} links"
    return _images_case(name, lambda *a: ops.trajgru(*a)[0], peers.trajgru, shapes)


def _images_case(
    name: str,
    ours: Callable[..., Tensor],
    theirs: Callable[..., Any],
    shapes: list[tuple[int, ...]],
) -> Case:
    """Return the case of two functions from arrays to images, PyTorch's in both formats."""
    import torch

    rng = np.random.default_rng(0)
    scales = [1 if len(shape) == 5 else 0.05 for shape in shapes]
    arrays = [
        rng.standard_normal(shape, np.float32) * np.float32(scale)
        for shape, scale in zip(shapes, scales, strict=True)
    ]
    tensors = [leaf(a) for a in arrays]
    dy = rng.standard_normal(ours(*tensors).shape, np.float32)

    def peer(layout: Any) -> Callable[[], None]:
        mine = [images(a, layout).requires_grad_() for a in arrays]
        their_dy = list(images(dy, layout))
        return lambda: torch.autograd.backward(theirs(*mine), their_dy)

    layouts = {"contiguous": torch.contiguous_format, "channels last": torch.channels_last}
    return Case(
        f"recurrent/{name}",
        lambda: ours(*tensors).backward(dy),
        {layout: peer(form) for layout, form in layouts.items()},
    )


def images(array: np.ndarray, layout: Any) -> Any:
    """Return an array for PyTorch; one of images (N, [T,] H, W, C) becomes ([T,] N, C, H, W)."""
    import torch

    x = torch.tensor(array)
    if x.ndim == 4:
        return x.permute(0, 3, 1, 2).contiguous(memory_format=layout)
    if x.ndim == 5:
        x = x.permute(1, 0, 4, 2, 3)
        return x.flatten(0, 1).contiguous(memory_format=layout).unflatten(0, x.shape[:2])
    return x
