"""Cross entropy of classes: from logits in one pass, and from log probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.losses import crossentropy as weighted
from daskdl.kernels.losses import softmax as kernels
from daskdl.kernels.vectors import functions
from daskdl.ops.losses.reduction import (
    Parts,
    check_labels,
    integer_labels,
    loss,
    per_class,
)
from daskdl.tensor import Array

__all__ = ["cross_entropy", "focal", "nll"]


@loss
def cross_entropy(
    logits: Array,
    labels: Array,
    *,
    weight: Any = None,
    smoothing: float = 0.0,
    ignore_index: int | None = None,
) -> Parts:
    """-log softmax(logits)[label].

    Parameters
    ----------
    logits : array (..., C), float32 or float64
    labels : integer array (...), or array (..., C) of probabilities
        Integers count from 0. Only probabilities get a gradient.
    weight : array (C,), optional
        Weight of each class.
    smoothing : float, from 0 to 1
        This share of each target is spread evenly over all classes (C. Szegedy et al., arXiv
        1512.00567).
    ignore_index : int, optional
        A sample's mean leaves out positions with this label; a sample without others adds 0. Not
        for probabilities.

    Examples
    --------
    >>> ops.cross_entropy(np.array([[2.0, 0.0]]), np.array([0])).data.round(4)
    np.float64(0.1269)
    """
    labels = np.asarray(labels)
    if not 0 <= smoothing <= 1:
        raise SettingsError(
            f"cross_entropy: expected smoothing from 0 to 1, found {smoothing}"
            "; give the share of probability that is spread over all classes"
        )
    if weight is not None:
        weight = per_class("cross_entropy", weight, logits.shape[-1], np.float64)
    if labels.dtype.kind == "f" and labels.shape == logits.shape and logits.ndim:
        if ignore_index is not None:
            raise SettingsError(
                "cross_entropy: expected no ignore_index with probabilities, found "
                f"{ignore_index}; set the probabilities to zero where targets are to be ignored"
            )
        return _soft(logits, labels, weight, smoothing)
    if labels.dtype.kind not in "iu" or labels.shape != logits.shape[:-1] or not logits.ndim:
        gaps = " with NaN" if labels.dtype.kind == "f" and np.isnan(labels).any() else ""
        raise ShapeError(
            f"cross_entropy: expected integer labels of shape {logits.shape[:-1]}, found "
            f"{labels.dtype} {labels.shape}{gaps}; labels.astype(np.int64) makes whole numbers, "
            f"labels[..., 0] drops an axis of one; probabilities have shape {logits.shape}"
        )
    if weight is None and not smoothing and ignore_index is None:
        return _plain(logits, labels)
    return _hard(logits, labels, weight, smoothing, ignore_index)


def _plain(logits: Array, labels: Array) -> Parts:
    losses, scales = kernels.cross_entropy(logits, labels)

    def slope(s: Array) -> Array:
        if not s.ndim:
            return kernels.cross_entropy_gradient(logits, labels, scales, float(s))
        factors = np.broadcast_to(s, labels.shape)
        return weighted.gradient(logits, labels, scales, factors)

    return losses.reshape(labels.shape), (slope, None)


def _hard(logits: Array, labels: Array, weight: Any, smoothing: float, ignored: Any) -> Parts:
    shape, classes = (len(labels) if labels.ndim else 1, -1), logits.shape[-1]
    labels, shares = _counted(labels, ignored)
    losses, scales = kernels.cross_entropy(logits, labels)
    hits = shares if weight is None else shares * weight[labels.reshape(-1)]
    spread = smoothing / classes * shares if smoothing else None
    shared = np.ones(classes) if weight is None else weight
    if spread is not None:
        hits = (1 - smoothing) * hits
        sums = -functions.log(scales[:, 1].astype(np.float64))  # logarithms of sums of exponentials
        rest = shared.sum() * sums - weighted.shared_target(logits, shared, scales[:, 0])
        losses = _product(hits, losses) + _product(spread, rest)
    else:
        losses = _product(hits, losses)

    def slope(s: Array) -> Array:
        each = np.broadcast_to(s.reshape(-1, 1), _cut(losses, shape).shape).reshape(-1)
        rest = None if spread is None else each * spread
        return weighted.gradient(logits, labels, scales, each * hits, rest, shared)

    return _samples(losses, shape), (slope, None)


def _soft(logits: Array, target: Array, weight: Any, smoothing: float) -> Parts:
    classes = logits.shape[-1]
    shape = (len(logits) if logits.ndim > 1 else 1, -1)
    target = target.astype(logits.dtype, copy=False)
    factor = None if weight is None else weight.astype(logits.dtype)
    mixed = (1 - smoothing) * target + smoothing / classes if smoothing else target
    mixed = mixed if factor is None else mixed * factor
    losses, scales = weighted.soft(logits, mixed.reshape(-1, classes))
    positions = max(1, losses.size // max(1, shape[0]))

    def factors(s: Array) -> Array:
        return np.broadcast_to(s.reshape(-1, 1) / positions, _cut(losses, shape).shape).reshape(-1)

    def to_logits(s: Array) -> Array:
        rows = mixed.reshape(-1, classes)
        return weighted.soft_gradient(logits, rows, scales, factors(s))

    def to_target(s: Array) -> Array:
        dt = (
            -(1 - smoothing)
            * factors(s).reshape(*logits.shape[:-1], 1)
            * kernels.log_softmax(logits)
        )
        return dt if factor is None else dt * factor

    return _cut(losses, shape).sum(1) / positions, (to_logits, to_target)


@loss
def focal(logits: Array, labels: Array, *, gamma: float = 2.0, weight: Any = None) -> Parts:
    """-(1 - p)^gamma log p, p = softmax(logits)[label]: easy samples count little.

    T.-Y. Lin et al., Focal Loss for Dense Object Detection, arXiv 1708.02002.

    Parameters
    ----------
    logits : array (..., C), float32 or float64
    labels : integer array (...)
        Labels from 0.
    gamma : float
        0 gives the cross entropy.
    weight : array (C,), optional
        Weight of each class.

    Examples
    --------
    >>> float(ops.losses.focal(np.array([[2.0, 0.0]]), np.array([0]), gamma=0.0).data.round(4))
    0.1269
    """
    labels = integer_labels("focal", labels, logits)
    check_labels("focal", labels, logits.shape[-1])
    logs, place = kernels.log_softmax(logits), labels[..., None].astype(np.int64)
    log = np.take_along_axis(logs, place, -1)[..., 0]
    p = np.exp(log)
    rest = np.maximum(1 - p, np.finfo(logits.dtype).tiny)  # so that its powers are finite
    share = np.ones((), logits.dtype)
    if weight is not None:
        share = per_class("focal", weight, logits.shape[-1], logits.dtype)[labels]

    def slope(s: Array) -> Array:
        to_log = s * share * rest**gamma * (gamma * p / rest * log - 1)
        result = -np.exp(logs) * to_log[..., None]
        np.put_along_axis(result, place, (rest * to_log)[..., None], -1)
        return result

    return -share * rest**gamma * log, (slope, None)


@loss
def nll(
    log_probabilities: Array,
    labels: Array,
    *,
    weight: Any = None,
    ignore_index: int | None = None,
) -> Parts:
    """Minus the log probability of the label, from given log probabilities.

    Parameters
    ----------
    log_probabilities : array (..., C), from log_softmax
    labels : integer array (...)
    weight : array (C,), optional
        Weight of each class.
    ignore_index : int, optional
        A sample's mean leaves out positions with this label; a sample without others adds 0.
    """
    x = log_probabilities
    labels = integer_labels("nll", labels, x)
    shape = (len(labels) if labels.ndim else 1, -1)
    labels, shares = _counted(labels, ignore_index)
    if weight is not None:
        weight = per_class("nll", weight, x.shape[-1], np.float64)
        check_labels("nll", labels, x.shape[-1])
        shares = shares * weight[labels.reshape(-1)]
    losses = weighted.nll(x, labels, shares)
    if losses is None:
        check_labels("nll", labels, x.shape[-1])  # raises with the wrong label
    assert losses is not None

    def slope(s: Array) -> Array:
        return weighted.nll_gradient(x, labels, shares, s)

    return _samples(losses, shape), (slope, None)


def _counted(labels: Array, ignored: int | None) -> tuple[Array, Array]:
    """Return labels, 0 for ignored ones, and each position's share in its sample's mean.

    If all shares are equal, they are one number, (1,).
    """
    positions = max(1, math.prod(labels.shape[1:]))
    if ignored is None:
        return labels, np.array([1 / positions])
    counts = labels != ignored
    n = counts.reshape(-1, positions).sum(1, keepdims=True) if labels.size else np.zeros((0, 1))
    shares = counts.reshape(-1, positions) / np.maximum(n, 1)
    return np.where(counts, labels, 0), shares.reshape(-1)


def _product(factors: Array, losses: Array) -> Array:
    """Multiply, but 0 times anything is 0, since ignored losses may not be finite."""
    return np.where(factors == 0, 0, factors * losses)


def _cut(losses: Array, shape: tuple[int, int]) -> Array:
    return losses.reshape(shape) if losses.size else losses.reshape(shape[0], 0)


def _samples(losses: Array, shape: tuple[int, int]) -> Array:
    return losses if losses.size == shape[0] else _cut(losses, shape).sum(1)
