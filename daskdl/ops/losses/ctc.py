"""Connectionist temporal classification: labels whose places in a sequence are unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import DataError, ShapeError
from daskdl.kernels.losses import ctc as kernel
from daskdl.kernels.losses.softmax import log_softmax
from daskdl.ops.losses.reduction import Parts, check_labels, loss
from daskdl.tensor import Array

__all__ = ["ctc"]

#: Ends a row of labels that is shorter than others.
PADDING = -1


@loss
def ctc(
    logits: Array,
    labels: Array,
    *,
    lengths: Any = None,
    blank: int = 0,
    zero_infinity: bool = False,
) -> Parts:
    """-log of the sum of the probabilities of all paths that spell the labels.

    A. Graves et al., Connectionist Temporal Classification, ICML 2006. A sample's loss is not
    divided by its number of labels.

    Parameters
    ----------
    logits : array (N, T, C)
        Scores before the softmax.
    labels : integer array (N, S)
        Classes other than ``blank``; rows with fewer than S are filled with -1.
    lengths : integer array (N,), optional
        Number of the T steps that count; by default all.
    blank : int
        The class that stands for no label.
    zero_infinity : bool
        Whether a sample with too few steps for its labels adds 0 instead of infinity.
    """
    if logits.ndim != 3:
        raise ShapeError(
            f"ctc: expected logits of shape (N, T, C), found {logits.shape}"
            "; give a row of scores for each step"
        )
    n, steps, classes = logits.shape
    if not 0 <= blank < classes:
        raise ShapeError(f"ctc: expected a blank from 0 to {classes - 1}, found {blank}")
    labels, counts = _labels(np.asarray(labels), n, classes, blank)
    lengths = _lengths(lengths, n, steps)
    log_probabilities = log_softmax(logits)
    forwards = kernel.forward(log_probabilities, labels, counts, lengths, blank)
    losses = forwards[0]
    none = np.isinf(losses)
    values = np.where(none, 0, losses) if zero_infinity else losses

    def slope(s: Array) -> Array:
        factors = np.broadcast_to(np.asarray(s, np.float64), (n,)).copy()
        if zero_infinity:
            factors[none] = 0
        return kernel.gradient(log_probabilities, labels, counts, lengths, blank, forwards, factors)

    return values, (slope, None)


def _labels(labels: Array, n: int, classes: int, blank: int) -> tuple[Array, Array]:
    if labels.ndim != 2 or len(labels) != n or labels.dtype.kind not in "iu":
        raise ShapeError(
            f"ctc: expected integer labels of shape ({n}, S), found {labels.dtype} {labels.shape}"
            "; labels.astype(np.int64) makes whole numbers so"
        )
    labels = np.ascontiguousarray(labels, np.int64)
    listed = labels != PADDING
    if (listed[:, 1:] & ~listed[:, :-1]).any():
        row = int(np.argmax((listed[:, 1:] & ~listed[:, :-1]).any(1)))
        raise DataError(
            f"ctc: expected {PADDING} only after a sample's labels, found {labels[row].tolist()}"
            "; pad rows of labels at their end alone"
        )
    check_labels("ctc", labels[listed], classes)
    if (labels == blank).any():
        raise DataError(
            f"ctc: expected labels other than the blank, found {blank}"
            "; count labels past it, or set blank to a class of its own"
        )
    return labels, listed.sum(1)


def _lengths(lengths: Any, n: int, steps: int) -> Array:
    if lengths is None:
        return np.full(n, steps, np.int64)
    lengths = np.asarray(lengths)
    if lengths.shape != (n,) or lengths.dtype.kind not in "iu":
        raise ShapeError(
            f"ctc: expected integer lengths of shape ({n},), found {lengths.dtype} {lengths.shape}"
        )
    wrong = lengths[(lengths < 0) | (lengths > steps)]
    if wrong.size:
        raise DataError(f"ctc: expected lengths from 0 to {steps}, found {wrong[0]}")
    return lengths.astype(np.int64)
