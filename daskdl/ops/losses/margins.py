"""Losses of margins between scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.losses.regression import multilabel_margin as margin_kernel
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors.activations import sigmoid, softplus
from daskdl.ops.losses.reduction import (
    Parts,
    along_last,
    check_labels,
    integer_labels,
    loss,
    per_class,
    signs,
)
from daskdl.tensor import Array

__all__ = ["hinge", "hinge_embedding", "multi_margin", "multilabel_margin", "soft_margin"]


@loss
def multi_margin(
    prediction: Array, labels: Array, *, p: int = 1, margin: float = 1.0, weight: Any = None
) -> Parts:
    """Sum over wrong classes of max(0, margin - x[label] + x[class]) ** p, divided by C.

    Parameters
    ----------
    prediction : array (N, C)
    labels : integer array (N,)
    p : 1 or 2
    weight : array (C,), optional
        Weight of each label.
    """
    if p not in (1, 2):
        raise SettingsError(f"multi_margin: expected p 1 or 2, found {p}")
    _matrix("multi_margin", prediction)
    labels = integer_labels("multi_margin", labels, prediction)
    n, classes = prediction.shape
    check_labels("multi_margin", labels, classes)
    rows = np.arange(n)
    short = np.maximum(margin - prediction[rows, labels][:, None] + prediction, 0)
    short[rows, labels] = 0
    factor = np.ones(n, prediction.dtype)
    if weight is not None:
        factor = per_class("multi_margin", weight, classes, prediction.dtype)[labels]
    values = factor * (short if p == 1 else short * short).sum(1) / classes

    def slope(s: Array) -> Array:
        d = (short > 0).astype(s.dtype) if p == 1 else 2 * short
        d[rows, labels] = -d.sum(1)
        return along_last(s) * (factor / classes)[:, None] * d

    return values, (slope, None)


@loss
def multilabel_margin(prediction: Array, labels: Array) -> Parts:
    """Sum over right and wrong classes of max(0, 1 - x[right] + x[wrong]), divided by C.

    Parameters
    ----------
    prediction : array (N, C)
    labels : integer array (N, K), K <= C
        The right classes, up to the first -1.
    """
    _matrix("multilabel_margin", prediction)
    n, classes = prediction.shape
    labels = np.asarray(labels)
    if labels.ndim != 2 or len(labels) != n or labels.dtype.kind not in "iu":
        raise ShapeError(
            f"multilabel_margin: expected integer labels of shape ({n}, K), each row ended by -1, "
            f"found {labels.dtype} {labels.shape}"
        )
    listed = np.logical_and.accumulate(labels != -1, axis=1)
    check_labels("multilabel_margin", labels[listed], classes)
    sums, slopes = margin_kernel(prediction, labels)

    def slope(s: Array) -> Array:
        return along_last(s) * slopes / classes

    return sums / classes, (slope, None)


def _matrix(name: str, prediction: Array) -> None:
    if prediction.ndim != 2 or not prediction.shape[1]:
        raise ShapeError(f"{name}: expected predictions of shape (N, C), found {prediction.shape}")


@loss
def hinge(prediction: Array, target: Array, *, margin: float = 1.0, squared: bool = False) -> Parts:
    """max(0, margin - t x), or its square; no gradient to the target.

    Parameters
    ----------
    prediction : array (N, ...)
    target : array of the same shape, of -1 and 1
    """
    target = signs("hinge", target, prediction.shape, prediction.dtype)
    short = np.maximum(margin - target * prediction, 0)
    if squared:
        return short * short, (lambda s: -2 * s * target * short, None)
    return short, (lambda s: -s * target * (short > 0), None)


@loss
def soft_margin(prediction: Array, target: Array) -> Parts:
    """log(1 + exp(-t x)), without overflow; no gradient to the target.

    Parameters
    ----------
    prediction : array (N, ...)
    target : array of the same shape, of -1 and 1
    """
    target = signs("soft_margin", target, prediction.shape, prediction.dtype)
    product = -target * prediction
    (values,) = one_pass(softplus, product)
    return values, (lambda s: -s * target * one_pass(sigmoid, product)[0], None)


@loss
def hinge_embedding(prediction: Array, target: Array, *, margin: float = 1.0) -> Parts:
    """Distance x where t is 1, max(0, margin - x) where it is -1; no gradient to the target.

    Parameters
    ----------
    prediction : array (N, ...)
    target : array of the same shape, of -1 and 1
    """
    target = signs("hinge_embedding", target, prediction.shape, prediction.dtype)
    short = margin - prediction
    values = np.where(target > 0, prediction, np.maximum(short, 0))
    return values, (lambda s: s * np.where(target > 0, 1, -(short > 0).astype(s.dtype)), None)
