"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.ops.arithmetic import matmul
from daskdl.ops.dropout import dropout
from daskdl.ops.shape import transpose
from daskdl.ops.softmax import softmax
from daskdl.tensor import Array, Tensor

__all__ = ["attention"]


def attention(
    query: Array | Tensor,
    key: Array | Tensor,
    value: Array | Tensor,
    *,
    mask: Array | None = None,
    causal: bool = False,
    rate: float = 0.0,
    seed: int = 0,
    counter: int = 0,
) -> Tensor:
    """Return, for each query, the mean of the values whose keys are like it.

    Parameters
    ----------
    query : array (..., T, C)
    key : array (..., S, C)
    value : array (..., S, D)
    mask : bool array that broadcasts to (..., T, S), optional
        True where a query may look. A query that may look nowhere gets NaN, as in PyTorch.
    causal : bool
        Whether query t sees no key behind t.
    rate, seed, counter
        Dropout of the weights, see :func:`daskdl.ops.dropout.dropout`.

    Returns
    -------
    array (..., T, D)

    References
    ----------
    A. Vaswani et al., Attention Is All You Need, arXiv 1706.03762.

    Examples
    --------
    >>> x = np.ones((2, 5, 3), np.float32)
    >>> ops.attention(x, x, x, causal=True).shape
    (2, 5, 3)
    """
    t, s = query.shape[-2], key.shape[-2]
    if query.shape[-1] != key.shape[-1] or value.shape[-2] != s:
        raise ShapeError(
            "attention: expected query (..., T, C), key (..., S, C) and value (..., S, D), found "
            f"{tuple(query.shape)}, {tuple(key.shape)} and {tuple(value.shape)}"
        )
    lead = query.shape[:-2], key.shape[:-2], value.shape[:-2]
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype != bool:
            raise ShapeError(
                f"attention: mask: expected bool, found {mask.dtype}"
                "; mask > 0 makes it so, True where a key may be seen"
            )
    try:
        scored = (*np.broadcast_shapes(*lead), t, s)
        fits = mask is None or np.broadcast_shapes(mask.shape, scored) == scored
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            "attention: expected leading axes, and a mask, that broadcast with each other, found "
            f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
            + ("" if mask is None else f" and mask {mask.shape}")
        )
    axes = (*range(len(key.shape) - 2), -1, -2)
    scores: Any = matmul(query * (1 / math.sqrt(query.shape[-1])), transpose(key, axes=axes))
    if causal:
        before = np.tri(t, s, dtype=bool)
        mask = before if mask is None else mask & before
    if mask is not None:
        scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)
    weights = softmax(scores)
    if rate:
        weights = dropout(weights, rate=rate, seed=seed, counter=counter)
    y: Tensor = matmul(weights, value)
    return y
