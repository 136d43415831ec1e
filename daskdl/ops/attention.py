"""Attention, and rows of an embedding table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.attention import attention as attention_kernel
from daskdl.kernels.attention.attention import Weighing
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.vectors import embedding as embedding_kernel
from daskdl.ops.arguments import FLOATS
from daskdl.ops.pointwise.activations import softmax
from daskdl.ops.pointwise.arithmetic import matmul, unbroadcast
from daskdl.ops.pointwise.elementwise import check_rate, dropout
from daskdl.ops.shape.shape import transpose
from daskdl.rows import Rows
from daskdl.tensor import Array, Tensor, op, watcher_of_operations

__all__ = [
    "attention",
    "embedding",
]


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
    """Return for each query the mean of values, weighted by the similarity of query and key.

    Memory is linear in T and S: weights are computed tile by tile, and again for gradients.

    Parameters
    ----------
    query : array (..., T, C)
    key : array (..., S, C)
    value : array (..., S, D)
    mask : bool array that broadcasts to (..., T, S), optional
        True where a query may see a key. A query that sees no key gets NaN, as in PyTorch.
    causal : bool
        Whether query t sees no key after t.
    rate, seed, counter
        Dropout of the weights, see :func:`daskdl.ops.pointwise.elementwise.dropout`.

    Returns
    -------
    array (..., T, D)

    References
    ----------
    A. Vaswani et al., Attention Is All You Need, arXiv 1706.03762.
    """
    check_rate("attention", rate)
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
    how = Weighing(None, causal, rate, seed, counter)
    floats = all(x.dtype in FLOATS and x.dtype == query.dtype for x in (query, key, value))
    if not floats or 0 in (t, s) or watcher_of_operations() is not None:
        return _by_operations(query, key, value, mask, how)
    return _in_tiles(query, key, value, mask, how=how)


@op
def _in_tiles(query: Array, key: Array, value: Array, mask: Array | None, *, how: Weighing):
    """Compute attention without a matrix of all weights."""
    how = how._replace(mask=mask, precision=precision())
    y, saved = attention_kernel.attention(query, key, value, how)

    def backward(dy: Array):
        slopes = attention_kernel.gradients(dy, saved, how)
        inputs = query, key, value
        return *(unbroadcast(d, x.shape) for d, x in zip(slopes, inputs, strict=True)), None

    return y, backward


def _by_operations(query: Any, key: Any, value: Any, mask: Array | None, how: Weighing) -> Tensor:
    """Compute attention by standard operations, such as an ONNX file has."""
    t, s = query.shape[-2], key.shape[-2]
    axes = (*range(len(key.shape) - 2), -1, -2)
    scores: Any = matmul(query * (1 / math.sqrt(query.shape[-1])), transpose(key, axes=axes))
    if how.causal:
        before = np.tri(t, s, dtype=bool)
        mask = before if mask is None else mask & before
    if mask is not None:
        scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)
    weights = softmax(scores)
    if how.rate:
        weights = dropout(weights, rate=how.rate, seed=how.seed, counter=how.counter)
    return matmul(weights, value)


@op
def embedding(table: Array, ids: Array, *, padding: int | None = None):
    """Take rows of a table.  table (rows, C), ids (...) of any integer dtype -> (..., C).

    The id ``padding`` gives zeros, and its row gets no gradient.

    The gradient to the table is a :class:`~daskdl.rows.Rows` of the rows that were taken. Tensors
    add it to an array of their shape, except parameters that keep it, see
    :class:`daskdl.nn.Parameter`.

    Examples
    --------
    >>> ops.embedding(np.eye(3), np.array([2, 0])).data
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    table, ids = np.asarray(table), np.asarray(ids)
    if table.ndim != 2:
        raise ShapeError(f"embedding: expected a table of shape (rows, C), found {table.shape}")
    if ids.dtype.kind not in "iu":
        raise ShapeError(
            f"embedding: expected integer ids, found {ids.dtype} {ids.shape}"
            "; ids.astype(np.int64) makes whole numbers so"
        )
    if padding is not None and not 0 <= padding < len(table):
        raise SettingsError(
            f"embedding: padding: expected an id from 0 to {len(table) - 1}, found {padding}"
            "; give the id of a row of the table"
        )

    def to_table(dy: Array) -> Rows:
        rows = Rows.of(ids, dy, len(table))
        if padding is not None:
            rows.values[rows.ids == padding] = 0
        return rows

    y = embedding_kernel.gather(table, ids)
    if padding is not None:
        y[ids == padding] = 0
    return y, lambda dy: (lambda: to_table(dy), None)
