"""Losses, forward and backward together by autograd, on large and on small arrays.

A loss that PyTorch lacks is written there as its formula, operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ci.bench.timing import Case
from daskdl.ops import losses
from daskdl.tensor import Tensor

#: Predictions of 64 small images, and of a batch of samples with ten numbers; rows and classes.
SHAPES, ROWS = ((64, 128, 128), (32, 10)), ((256, 1000), (4096, 64), (32, 10))

#: Rain rates from which a pixel counts more, and the weights below and above them.
THRESHOLDS, WEIGHTS = np.array([0.5, 1.0, 2.0], np.float32), np.array([1, 2, 5, 10], np.float32)

#: A name, our loss, PyTorch's, predictions and targets.
Loss = tuple[str, Callable[..., Any], Callable[..., Any], Any, Any]


def cases() -> Iterator[Case]:
    """Yield elementwise losses, losses over classes, and others."""
    from torch.nn import functional as peer

    rng = np.random.default_rng(0)
    for shape in SHAPES:
        size = f"{'x'.join(map(str, shape[1:]))} b{shape[0]}"
        for name, *loss in _elementwise(peer, *rng.standard_normal((2, *shape), np.float32)):
            yield _case(f"{name} {size}", *loss)
    for rows, classes in ROWS:
        x, labels = rng.standard_normal((rows, classes), np.float32), rng.integers(0, classes, rows)
        weight = rng.random(classes, np.float32) + np.float32(0.5)
        for name, *loss in _rows(peer, x, labels, weight):
            yield _case(f"{name} {rows} x {classes}", *loss)
    for loss in _others(peer, rng):
        yield _case(*loss)


def _elementwise(peer: Any, x: Any, y: Any) -> list[Loss]:
    import torch

    p = np.float32(0.99) / (1 + np.exp(-x))
    hits, signs, positive = (y > 0).astype("f4"), np.sign(y), np.abs(y) + np.float32(0.1)
    there, turned = torch.from_numpy(positive), torch.from_numpy(signs)

    def rain(x: Any, y: Any) -> Any:
        weight = torch.from_numpy(WEIGHTS)[torch.bucketize(y, torch.from_numpy(THRESHOLDS))]
        d = x - y
        return (weight * (d * d + d.abs())).mean()

    def balanced(x: Any, y: Any) -> Any:
        return losses.precipitation(
            x, y, thresholds=THRESHOLDS, weights=WEIGHTS, squared=1.0, absolute=1.0
        )

    def dice(x: Any, y: Any) -> Any:
        inside = tuple(range(1, x.ndim))
        above, below = 2 * (x * y).sum(inside) + 1, (x + y).sum(inside) + 1
        return (1 - above / below).mean()

    def logs(x: Any, y: Any) -> Any:
        return peer.mse_loss(torch.log1p(x.clamp(min=0)), torch.log1p(y.clamp(min=0)))

    def percent(x: Any, y: Any) -> Any:
        return 100 * ((x - y).abs() / y.abs().clamp(min=1e-7)).mean()

    made: list[Loss] = [
        ("mse", losses.squared_error, peer.mse_loss, x, y),
        ("l1", losses.absolute_error, peer.l1_loss, x, y),
        ("huber", losses.huber, peer.huber_loss, x, y),
        ("smooth l1", losses.smooth_l1, peer.smooth_l1_loss, x, y),
        ("msle", losses.squared_log_error, logs, x, positive),
        ("mape", losses.percentage_error, percent, x, positive),
        ("bce", losses.binary_cross_entropy, peer.binary_cross_entropy, p, hits),
        ("bce with logits", losses.binary_cross_entropy_with_logits,
         peer.binary_cross_entropy_with_logits, x, hits),
        ("poisson", losses.poisson_nll, peer.poisson_nll_loss, x, positive),
        ("gaussian", lambda x, y: losses.gaussian_nll(x, positive, y),
         lambda x, y: peer.gaussian_nll_loss(x, y, there), x, y),
        ("hinge", losses.hinge, lambda x, y: (1 - y * x).clamp(min=0).mean(), x, signs),
        ("soft margin", losses.soft_margin, peer.soft_margin_loss, x, signs),
        ("hinge embedding", losses.hinge_embedding, peer.hinge_embedding_loss, x, signs),
        ("margin ranking", lambda x, y: losses.margin_ranking(x, y, signs, margin=0.1),
         lambda x, y: peer.margin_ranking_loss(x, y, turned, 0.1), x, y),
        ("precipitation", balanced, rain, x, positive),
    ]  # fmt: skip
    if x.ndim > 2:
        made.append(("dice", lambda x, y: losses.dice(x, y), dice, p[..., None], hits[..., None]))
    return made


def _rows(peer: Any, x: Any, labels: Any, weight: Any) -> list[Loss]:
    import torch

    there = torch.from_numpy(weight)
    log_x = torch.log_softmax(torch.from_numpy(x), -1).numpy()
    q = torch.softmax(torch.from_numpy(x[::-1].copy()), -1).numpy()
    cross_entropy = losses.cross_entropy
    return [
        ("cross entropy", cross_entropy, peer.cross_entropy, x, labels),
        ("cross entropy weighted", lambda x, y: cross_entropy(x, y, weight=weight),
         lambda x, y: peer.cross_entropy(x, y, there), x, labels),
        ("cross entropy smoothed", lambda x, y: cross_entropy(x, y, smoothing=0.1),
         lambda x, y: peer.cross_entropy(x, y, label_smoothing=0.1), x, labels),
        ("nll", losses.nll, peer.nll_loss, log_x, labels),
        ("kl", losses.kl_divergence,
         lambda x, y: peer.kl_div(x, y, reduction="batchmean"), log_x, q),
        ("multi margin", losses.multi_margin, peer.multi_margin_loss, x, labels),
    ]  # fmt: skip


def _others(peer: Any, rng: np.random.Generator) -> list[Loss]:
    import torch

    few = rng.standard_normal((256, 20), np.float32)
    orders = rng.permuted(np.tile(np.arange(20), (256, 1)), axis=1)
    several = np.where(np.arange(20) < 3, orders, -1)
    a, b, c = rng.standard_normal((3, 4096, 128), np.float32)
    t = np.sign(rng.standard_normal(4096, np.float32))
    there, turned = torch.from_numpy(c), torch.from_numpy(t)
    x, labels = rng.standard_normal((16, 200, 40), np.float32), rng.integers(1, 40, (16, 40))
    steps, counts = torch.full((16,), 200), torch.full((16,), 40)
    return [
        ("multilabel margin 256 x 20", losses.multilabel_margin, peer.multilabel_margin_loss,
         few, several),
        ("cosine embedding 4096 x 128", lambda x, y: losses.cosine_embedding(x, y, t),
         lambda x, y: peer.cosine_embedding_loss(x, y, turned), a, b),
        ("triplet 4096 x 128", lambda x, y: losses.triplet(x, y, c),
         lambda x, y: peer.triplet_margin_loss(x, y, there), a, b),
        ("ctc 200x40 b16", losses.ctc, lambda x, y: peer.ctc_loss(
            x.log_softmax(-1).transpose(0, 1), y, steps, counts), x, labels),
    ]  # fmt: skip


def _case(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any], x: Any, y: np.ndarray
) -> Case:
    import torch

    mine, there, target = Tensor(x, True), torch.from_numpy(x), torch.from_numpy(y)
    there.requires_grad_()

    # Call the node's function, as Tensor.backward would copy to the leaf's grad: inside a network a
    # prediction is no leaf, and PyTorch's autograd.grad does not copy either.
    def train() -> None:
        value = ours(mine, y)
        gradient = value._node.backward(np.ones_like(value.data))[0]
        if callable(gradient):
            gradient()

    def they_train() -> None:
        torch.autograd.grad(theirs(there, target), there)

    return Case(f"losses/{name}", train, {"autograd": they_train})
