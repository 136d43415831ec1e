"""Normalisation and pooling of well-known networks: forward, backward and both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl import ops
from daskdl.tensor import Tensor, no_grad

IMAGES = ((8, 112, 112, 64), (8, 56, 56, 64), (8, 14, 14, 1024), (8, 28, 28, 192))


def cases() -> Iterator[Case]:
    """Yield batch norm (with ReLU, and in inference), LRN, layer, group and L2 norm."""
    from torch.nn import functional as peer

    for shape in IMAGES:
        c = shape[-1]
        yield from passes(
            f"batch norm relu/{image(shape)}",
            lambda x, w, b: ops.batch_norm(x, w, b, relu=True)[0],
            lambda x, w, b: peer.relu(peer.batch_norm(x, None, None, w, b, True), True),
            [shape, (c,), (c,)],
        )
    for shape in ((8, 56, 56, 64), (8, 28, 28, 192)):
        yield from passes(
            f"lrn/{image(shape)} 5",
            lambda x: ops.local_response_norm(x, size=5, alpha=1e-4, beta=0.75, k=1.0),
            lambda x: peer.local_response_norm(x, 5, 1e-4, 0.75, 1.0),
            [shape],
        )
    yield from passes(
        "layer norm/4096x512",
        ops.layer_norm,
        lambda x, w, b: peer.layer_norm(x, (512,), w, b),
        [(4096, 512), (512,), (512,)],
    )
    for shape in ((8, 56, 56, 64), (8, 14, 14, 256)):
        c = shape[-1]
        yield from passes(
            f"group norm/{image(shape)} 8",
            lambda x, w, b: ops.group_norm(x, w, b, groups=8),
            lambda x, w, b: peer.group_norm(x, 8, w, b),
            [shape, (c,), (c,)],
        )
    yield from passes("l2 normalise/4096x512", ops.normalize, peer.normalize, [(4096, 512)])


def image(shape: tuple[int, ...]) -> str:
    """Return the name of a batch of images."""
    return "x".join(map(str, shape[1:])) + f" b{shape[0]}"


def passes(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> Iterator[Case]:
    """Yield the races of a function of arrays: forward, backward, both together.

    PyTorch gets images in both formats, channels last and contiguous.
    """
    import torch

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
    tensors = [Tensor(a, requires_grad=True) for a in arrays]
    peers = {"": [torch.from_numpy(a) for a in arrays]}
    if arrays[0].ndim == 4:
        last = peers[""][0].permute(0, 3, 1, 2)
        rest = peers[""][1:]
        peers = {"channels last": [last, *rest], "contiguous": [last.contiguous(), *rest]}

    def forward() -> None:
        with no_grad():
            ours(*arrays)

    dy = rng.standard_normal(ours(*arrays).shape, np.float32)

    # Call the node's function, as Tensor.backward would copy to the leaves' grad: inside a network
    # these are no leaves, and PyTorch's autograd.grad does not copy either.
    def back(node: Any) -> None:
        for gradient in node.backward(dy):
            if callable(gradient):
                gradient()

    def both() -> None:
        back(ours(*tensors)._node)

    node = ours(*tensors)._node

    def backward() -> None:
        back(node)

    torch_forward, torch_backward, torch_both = {}, {}, {}
    for layout, inputs in peers.items():
        graph = [t.detach().requires_grad_() for t in inputs]
        y = theirs(*graph)
        gradient = torch.from_numpy(dy)
        if y.ndim == 4:
            gradient = gradient.permute(0, 3, 1, 2)
            if layout == "contiguous":
                gradient = gradient.contiguous()
        torch_forward[layout] = partial(theirs, *inputs)
        torch_backward[layout] = partial(torch.autograd.grad, y, graph, gradient, retain_graph=True)
        torch_both[layout] = partial(_torch_both, theirs, graph, gradient)
    yield Case(f"{name}/forward", forward, torch_forward)
    yield Case(f"{name}/backward", backward, torch_backward)
    yield Case(f"{name}/both", both, torch_both)


def _torch_both(function: Callable[..., Any], graph: list[Any], gradient: Any) -> Any:
    import torch

    return torch.autograd.grad(function(*graph), graph, gradient)


#: Images, size of a window, stride and padding.
WINDOWS = (
    ((8, 112, 112, 64), 3, 2, 1),
    ((8, 28, 28, 192), 3, 1, 1),
    ((8, 56, 56, 64), 2, 2, 0),
)
GLOBAL = ((8, 7, 7, 2048), (8, 7, 7, 1024))


def cases_pooling() -> Iterator[Case]:
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
