"""Losses that are nodes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.nn.operators.table import Call, Value, array, operator


@operator("NegativeLogLikelihoodLoss")
def nll_loss(call: Call, scores: Value, labels: Value, weight: Value = None) -> Value:
    """Mean, sum or each of -log p of the labels' classes; scores (N, C, ...), labels (N, ...)."""
    ids = array(labels)
    ignored = call.get("ignore_index")
    kept = np.ones(ids.shape, bool) if ignored is None else ids != ignored
    ids = np.where(kept, ids, 0)
    grid = np.ogrid[tuple(slice(n) for n in ids.shape)]
    picked = ops.take(scores, index=(grid[0], ids, *grid[1:]))
    factor: Any = kept.astype(array(scores).dtype)
    if weight is not None:
        factor = factor * array(weight)[ids]
    loss = ops.multiply(picked, -factor)
    how = call.get("reduction", "mean")
    how = how.decode() if isinstance(how, bytes) else how
    if how == "none":
        return loss
    total = ops.sum(loss)
    if how == "sum":
        return total
    return ops.divide(total, np.asarray(factor.sum(), array(scores).dtype))


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    call: Call, scores: Value, labels: Value, weight: Value = None
) -> Value:
    """Return the same of scores that a softmax over axis 1 makes probabilities; and these' logs."""
    logs = ops.log_softmax(scores, axis=1)
    return nll_loss(call, logs, labels, weight), logs
