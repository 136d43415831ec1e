"""Losses, forward and backward together, on much and on little: what autograd does of each side.

Where PyTorch has no such loss it has the formula, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl.ops import losses
from daskdl.tensor import Tensor

#: Predictions of 64 small images, and of a batch of samples with ten numbers.
SHAPES = ((64, 128, 128), (32, 10))

#: Rain rates from which a pixel counts more, and what it counts.
THRESHOLDS, WEIGHTS = np.array([0.5, 1.0, 2.0], np.float32), np.array([1, 2, 5, 10], np.float32)


def cases() -> Iterator[Case]:
    """Yield all of them."""
    import torch
    from torch.nn import functional as peer

    rng = np.random.default_rng(0)
    for shape in SHAPES:
        size = f"{'x'.join(map(str, shape[1:]))} b{shape[0]}"
        yield from _elementwise(torch, peer, size, rng, shape)
    yield from _rows(torch, peer, rng)
    x = rng.standard_normal((16, 200, 40), np.float32)
    labels = rng.integers(1, 40, (16, 40))
    steps, counts = torch.full((16,), 200), torch.full((16,), 40)
    yield _case(
        "ctc 200x40 b16",
        losses.ctc,
        lambda x, y: peer.ctc_loss(x.log_softmax(-1).transpose(0, 1), y, steps, counts),
        x,
        labels,
    )


def _elementwise(
    torch: Any, peer: Any, size: str, rng: np.random.Generator, shape: tuple[int, ...]
) -> Iterator[Case]:
    x, y = rng.standard_normal((2, *shape), np.float32)
    p = np.float32(0.99) / (1 + np.exp(-x))
    hits, signs, positive = (y > 0).astype("f4"), np.sign(y), np.abs(y) + np.float32(0.1)

    def rain(x: Any, y: Any) -> Any:
        weight = torch.from_numpy(WEIGHTS)[torch.bucketize(y, torch.from_numpy(THRESHOLDS))]
        d = x - y
        return (weight * (d * d + d.abs())).mean()

    def dice(x: Any, y: Any) -> Any:
        inside = tuple(range(1, x.ndim))
        above, below = 2 * (x * y).sum(inside) + 1, (x + y).sum(inside) + 1
        return (1 - above / below).mean()

    def logs(x: Any, y: Any) -> Any:
        return peer.mse_loss(torch.log1p(x.clamp(min=0)), torch.log1p(y.clamp(min=0)))

    def balanced(x: Any, y: Any) -> Any:
        return losses.precipitation(
            x, y, thresholds=THRESHOLDS, weights=WEIGHTS, squared=1.0, absolute=1.0
        )

    yield _case(f"mse {size}", losses.squared_error, peer.mse_loss, x, y)
    yield _case(f"l1 {size}", losses.absolute_error, peer.l1_loss, x, y)
    yield _case(f"huber {size}", losses.huber, peer.huber_loss, x, y)
    yield _case(f"smooth l1 {size}", losses.smooth_l1, peer.smooth_l1_loss, x, y)
    yield _case(f"msle {size}", losses.squared_log_error, logs, x, positive)
    yield _case(
        f"mape {size}",
        losses.percentage_error,
        lambda x, y: 100 * ((x - y).abs() / y.abs().clamp(min=1e-7)).mean(),
        x,
        positive,
    )
    yield _case(f"bce {size}", losses.binary_cross_entropy, peer.binary_cross_entropy, p, hits)
    with_logits = peer.binary_cross_entropy_with_logits
    yield _case(
        f"bce with logits {size}", losses.binary_cross_entropy_with_logits, with_logits, x, hits
    )
    yield _case(f"poisson {size}", losses.poisson_nll, peer.poisson_nll_loss, x, positive)
    yield _case(
        f"gaussian {size}",
        lambda x, y: losses.gaussian_nll(x, positive, y),
        lambda x, y: peer.gaussian_nll_loss(x, y, torch.from_numpy(positive)),
        x,
        y,
    )
    yield _case(
        f"hinge {size}",
        losses.hinge,
        lambda x, y: (1 - y * x).clamp(min=0).mean(),
        x,
        signs,
    )
    yield _case(f"soft margin {size}", losses.soft_margin, peer.soft_margin_loss, x, signs)
    yield _case(
        f"hinge embedding {size}", losses.hinge_embedding, peer.hinge_embedding_loss, x, signs
    )
    yield _case(
        f"margin ranking {size}",
        lambda x, y: losses.margin_ranking(x, y, signs, margin=0.1),
        lambda x, y: peer.margin_ranking_loss(x, y, torch.from_numpy(signs), 0.1),
        x,
        y,
    )
    yield _case(f"precipitation {size}", balanced, rain, x, positive)
    if len(shape) > 2:
        yield _case(
            f"dice {size}",
            lambda x, y: losses.dice(x, y),
            dice,
            p[..., None],
            hits[..., None],
        )


def _rows(torch: Any, peer: Any, rng: np.random.Generator) -> Iterator[Case]:
    for rows, classes in ((256, 1000), (4096, 64), (32, 10)):
        size = f"{rows} x {classes}"
        x = rng.standard_normal((rows, classes), np.float32)
        labels = rng.integers(0, classes, rows)
        weight = rng.random(classes, np.float32) + np.float32(0.5)
        there = torch.from_numpy(weight)
        log_x = torch.log_softmax(torch.from_numpy(x), -1).numpy()
        q = torch.softmax(torch.from_numpy(x[::-1].copy()), -1).numpy()
        yield _case(f"cross entropy {size}", losses.cross_entropy, peer.cross_entropy, x, labels)
        yield _case(
            f"cross entropy weighted {size}",
            lambda x, y, w=weight: losses.cross_entropy(x, y, weight=w),
            lambda x, y, w=there: peer.cross_entropy(x, y, w),
            x,
            labels,
        )
        yield _case(
            f"cross entropy smoothed {size}",
            lambda x, y: losses.cross_entropy(x, y, smoothing=0.1),
            lambda x, y: peer.cross_entropy(x, y, label_smoothing=0.1),
            x,
            labels,
        )
        yield _case(f"nll {size}", losses.nll, peer.nll_loss, log_x, labels)
        yield _case(
            f"kl {size}",
            losses.kl_divergence,
            lambda x, y: peer.kl_div(x, y, reduction="batchmean"),
            log_x,
            q,
        )
        yield _case(f"multi margin {size}", losses.multi_margin, peer.multi_margin_loss, x, labels)
    few = rng.standard_normal((256, 20), np.float32)
    orders = rng.permuted(np.tile(np.arange(20), (256, 1)), axis=1)
    several = np.where(np.arange(20) < 3, orders, -1)
    yield _case(
        "multilabel margin 256 x 20",
        losses.multilabel_margin,
        peer.multilabel_margin_loss,
        few,
        several,
    )
    a, b, c = rng.standard_normal((3, 4096, 128), np.float32)
    t = np.sign(rng.standard_normal(4096, np.float32))
    yield _case(
        "cosine embedding 4096 x 128",
        lambda x, y: losses.cosine_embedding(x, y, t),
        lambda x, y: peer.cosine_embedding_loss(x, y, torch.from_numpy(t)),
        a,
        b,
    )
    yield _case(
        "triplet 4096 x 128",
        lambda x, y: losses.triplet(x, y, c),
        lambda x, y: peer.triplet_margin_loss(x, y, torch.from_numpy(c)),
        a,
        b,
    )


def _case(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any], x: Any, y: np.ndarray
) -> Case:
    import torch

    mine, there, target = Tensor(x, True), torch.from_numpy(x), torch.from_numpy(y)
    there.requires_grad_()

    # The node's function and not Tensor.backward, which would copy to the leaf's grad: inside a
    # network a prediction is no leaf, and PyTorch's autograd.grad does not copy either.
    def train() -> None:
        value = ours(mine, y)
        gradient = value._node.backward(np.ones_like(value.data))[0]
        if callable(gradient):
            gradient()

    def they_train() -> None:
        torch.autograd.grad(theirs(there, target), there)

    return Case(f"losses/{name}", train, {"autograd": they_train})
