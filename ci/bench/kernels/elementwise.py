"""Activations, dropout, softmax and sums, on large and on small arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl.kernels.losses import softmax
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors import activations
from daskdl.kernels.vectors.dropout import dropout
from daskdl.kernels.vectors.reduce import sum_over

#: Activations of ResNet-50's first stage for 32 images, and of one image.
SHAPES = ((32, 56, 56, 64), (1, 56, 56, 64))

#: PyTorch's forward and backward, and their arguments after the tensors.
ACTIVATIONS: dict[str, tuple[str, str, tuple[Any, ...], tuple[Any, ...]]] = {
    "relu": ("relu", "threshold_backward", (), (0,)),
    "leaky relu": ("leaky_relu", "leaky_relu_backward", (0.2,), (0.2, False)),
    "elu": ("elu", "elu_backward", (1.0,), (1.0, 1, 1, False)),
    "gelu": ("gelu", "gelu_backward", (), ()),
    "silu": ("silu", "silu_backward", (), ()),
    "sigmoid": ("sigmoid", "sigmoid_backward", (), ()),
    "tanh": ("tanh", "tanh_backward", (), ()),
    "softplus": ("softplus", "softplus_backward", (), (1, 20)),
    "hard sigmoid": ("hardsigmoid", "hardsigmoid_backward", (), ()),
    "hard swish": ("hardswish", "hardswish_backward", (), ()),
}


def cases() -> Iterator[Case]:
    """Yield the cases of each shape."""
    import torch

    rng = np.random.default_rng(0)
    aten = torch.ops.aten
    for shape in SHAPES:
        x, dy = rng.standard_normal((2, *shape), np.float32)
        there = torch.from_numpy(x)
        size = f"b{shape[0]}"
        for name, (forward, back, settings, more) in ACTIVATIONS.items():
            yield from _activation(f"{name} {size}", x, dy, forward, back, settings, more)
        yield Case(
            f"elementwise/dropout {size}",
            lambda x=x: dropout(x, 0.5, 1, 2),  # type: ignore[misc]
            {"native": lambda there=there: aten.native_dropout(there, 0.5, True)},  # type: ignore[misc]
        )
        yield from _sums(size, x, there)
    for rows, classes in ((256, 1000), (4096, 64), (32, 30_000), (16_384, 10)):
        yield from _softmax(rows, classes)


def _activation(
    name: str, x: Any, dy: Any, forward: str, back: str, settings: Any, more: Any
) -> Iterator[Case]:
    import torch

    ours = name.rsplit(" ", 1)[0].replace(" ", "_")
    vector = np.array(settings, np.float32) if settings else None
    there, up = torch.from_numpy(x), torch.from_numpy(dy)
    aten = torch.ops.aten
    kernel, kernel_back = getattr(activations, ours), getattr(activations, f"{ours}_back")
    theirs, theirs_back = getattr(aten, forward), getattr(aten, back)
    arguments = (up, *more, there) if back == "elu_backward" else (up, there, *more)
    yield Case(
        f"elementwise/{name}/forward",
        lambda: one_pass(kernel, x, settings=vector),
        {"aten": lambda: theirs(there, *settings)},
    )
    yield Case(
        f"elementwise/{name}/backward",
        lambda: one_pass(kernel_back, x, dy, settings=vector),
        {"aten": lambda: theirs_back(*arguments)},
    )


def _sums(size: str, x: Any, there: Any) -> Iterator[Case]:
    def pair(axes: tuple[int, ...]) -> tuple[Callable[[], Any], dict[str, Callable[[], Any]]]:
        return lambda: sum_over(x, axes), {"sum": lambda: there.sum(axes)}

    for axes in ((0, 1, 2, 3), (0, 1, 2), (1, 2), (3,)):
        yield Case(f"elementwise/sum {size} over {''.join(map(str, axes))}", *pair(axes))


def _softmax(rows: int, classes: int) -> Iterator[Case]:
    import torch

    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, classes), np.float32)
    there = torch.from_numpy(x)
    y, log_y = softmax.softmax(x), torch.log_softmax(there, -1)
    after = torch.from_numpy(y)

    aten, size = torch.ops.aten, f"elementwise/{{}} {rows} x {classes}/{{}}"
    of_rows: list[tuple[str, str, Callable[[], Any], str, Callable[[], Any]]] = [
        ("softmax", "forward", lambda: softmax.softmax(x),
         "aten", lambda: aten._softmax(there, -1, False)),
        ("softmax", "backward", lambda: softmax.softmax_gradient(y, x),
         "aten", lambda: aten._softmax_backward_data(there, after, -1, torch.float32)),
        ("log softmax", "forward", lambda: softmax.log_softmax(x),
         "aten", lambda: aten._log_softmax(there, -1, False)),
        ("log softmax", "backward", lambda: softmax.log_softmax_gradient(log_y.numpy(), x),
         "aten", lambda: aten._log_softmax_backward_data(there, log_y, -1, torch.float32)),
    ]  # fmt: skip
    for name, part, ours, peer, theirs in of_rows:
        yield Case(size.format(name, part), ours, {peer: theirs})
