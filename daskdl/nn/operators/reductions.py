"""Reductions along axes, and losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.nn.operators.table import Call, Value, array, axes_of, is_float, operator


def _axes(call: Call, x: Value, axes_input: Value) -> tuple[int, ...] | None:
    """Return the axes, by default all; None if there is nothing to reduce."""
    ndim = array(x).ndim
    axes = axes_of(call, ndim, axes_input)
    if not axes and axes_input is not None and array(axes_input).size:
        axes = ()
    if axes:
        return axes
    return None if call.get("noop_with_empty_axes", 0) else tuple(range(ndim))


def _sum(x: Value, axes: tuple[int, ...], keep: bool) -> Value:
    if is_float(x):
        return ops.sum(x, axis=axes, keepdims=keep) if axes else x
    values = array(x)
    return values.sum(axis=axes, keepdims=keep, dtype=values.dtype)


def _same(x: Value) -> Value:
    return x


#: Functions of the summands and of the sums.
_SUMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "ReduceSum": (_same, _same),
    "ReduceSumSquare": (ops.square, _same),
    "ReduceL1": (ops.abs, _same),
    "ReduceL2": (ops.square, ops.sqrt),
    "ReduceLogSum": (_same, ops.log),
}


@operator(*_SUMS)
def reduce_sum(call: Call, x: Value, axes: Value = None) -> Value:
    """Sum elements, squares or magnitudes; ReduceL2 takes the root, ReduceLogSum the logarithm."""
    inside, outside = _SUMS[call.name]
    chosen, x = _axes(call, x, axes), inside(x)
    return outside(x if chosen is None else _sum(x, chosen, bool(call.get("keepdims", 1))))


@operator("ReduceLogSumExp")
def reduce_log_sum_exp(call: Call, x: Value, axes: Value = None) -> Value:
    """Logarithm of the sum of exponentials, without overflow."""
    chosen, values = _axes(call, x, axes), array(x)
    if chosen is None:
        return x
    top = values.max(axis=chosen, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(values.dtype)
    y = ops.log(ops.sum(ops.exp(ops.subtract(x, top)), axis=chosen, keepdims=True)) + top
    if call.get("keepdims", 1):
        return y
    return ops.reshape(y, shape=tuple(n for i, n in enumerate(y.shape) if i not in chosen))


@operator("ReduceMean")
def reduce_mean(call: Call, x: Value, axes: Value = None) -> Value:
    """Mean."""
    chosen = _axes(call, x, axes)
    if chosen is None:
        return x
    keep = bool(call.get("keepdims", 1))
    if is_float(x):
        return ops.mean(x, axis=chosen, keepdims=keep)
    return array(x).mean(axis=chosen, keepdims=keep).astype(array(x).dtype)


@operator("ReduceProd")
def reduce_prod(call: Call, x: Value, axes: Value = None) -> Value:
    """Product."""
    chosen = _axes(call, x, axes)
    if chosen is None:
        return x
    if not is_float(x):
        return array(x).prod(
            axis=chosen, keepdims=bool(call.get("keepdims", 1)), dtype=array(x).dtype
        )
    return ops.prod(x, axis=chosen, keepdims=bool(call.get("keepdims", 1)))


@operator("ReduceMax", "ReduceMin")
def reduce_extreme(call: Call, x: Value, axes: Value = None) -> Value:
    """Return the largest or the smallest element; without elements -inf or inf."""
    chosen, keep, values = _axes(call, x, axes), bool(call.get("keepdims", 1)), array(x)
    if chosen is None:
        return x
    highest = call.name == "ReduceMax"
    if values.dtype.kind == "f" and values.size and chosen:
        # The axes are joined to one, along which the extreme has a gradient.
        rest = tuple(i for i in range(values.ndim) if i not in chosen)
        y = ops.transpose(x, axes=(*rest, *chosen))
        y = ops.reshape(y, shape=(*(values.shape[i] for i in rest), -1))
        y = (ops.amax if highest else ops.amin)(y, axis=-1)
        ones = tuple(1 if i in chosen else n for i, n in enumerate(values.shape))
        return ops.reshape(y, shape=ones) if keep else y
    if values.dtype == bool:
        return (np.any if highest else np.all)(values, axis=chosen, keepdims=keep)
    kind = np.finfo if values.dtype.kind == "f" else np.iinfo
    none: Any = -np.inf if highest else np.inf
    if kind is np.iinfo:
        none = kind(values.dtype).min if highest else kind(values.dtype).max
    return (np.max if highest else np.min)(values, axis=chosen, keepdims=keep, initial=none)


@operator("ArgMax", "ArgMin")
def arg_extreme(call: Call, x: Value) -> Value:
    """Return the index of the largest or smallest element along an axis, without gradient."""
    values, axis = array(x), call.get("axis", 0)
    find = np.argmax if call.name == "ArgMax" else np.argmin
    if call.get("select_last_index", 0):
        places = values.shape[axis] - 1 - find(np.flip(values, axis), axis=axis)
    else:
        places = find(values, axis=axis)
    places = places.astype(np.int64)
    return np.expand_dims(places, axis) if call.get("keepdims", 1) else places


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: Call, x: Value) -> Value:
    """Softmax, its logarithm, or 1 at the first maximum; before version 13 over all axes
    from ``axis`` on.
    """  # noqa: D205
    shape, axis = array(x).shape, call.get("axis", -1 if call.opset >= 13 else 1)
    flat = call.opset < 13
    if flat:
        axis %= max(1, len(shape))
        x = ops.reshape(x, shape=(math.prod(shape[:axis]), math.prod(shape[axis:])))
    along = 1 if flat else axis
    if call.name == "Hardmax":
        values = array(x)
        places = np.expand_dims(values.argmax(along), along)
        y: Any = np.zeros_like(values)
        np.put_along_axis(y, places, 1, along)
    else:
        y = (ops.softmax if call.name == "Softmax" else ops.log_softmax)(x, axis=along)
    return ops.reshape(y, shape=shape) if flat else y


@operator("TopK")
def topk(call: Call, x: Value, k: Value = None) -> Value:
    """Return the k largest elements along an axis and their indices."""
    count = call.get("k") if k is None else int(array(k).reshape(-1)[0])
    values, places = ops.topk(
        x, k=int(count), axis=call.get("axis", -1), largest=bool(call.get("largest", 1))
    )
    return values, places.data


@operator("NonZero")
def non_zero(call: Call, x: Value) -> Value:
    """Return the indices of elements other than 0, (axes, n)."""
    values = array(x)
    return np.array(np.nonzero(np.atleast_1d(values)), np.int64)[: max(values.ndim, 1)]


@operator("Unique")
def unique(call: Call, x: Value) -> Value:
    """Return distinct elements, their first indices, each element's index among them, counts."""
    elements, axis = array(x), call.get("axis")
    values, first, inverse, counts = np.unique(
        elements, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not call.get("sorted", 1):
        order = np.argsort(first)
        back = np.argsort(order)
        values = np.take(values, order, axis=0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], back[inverse]
    return values, *(part.astype(np.int64) for part in (first, inverse, counts))


@operator("NegativeLogLikelihoodLoss")
def nll_loss(call: Call, scores: Value, labels: Value, weight: Value = None) -> Value:
    """Mean, sum or all of -log p of the labels' classes; scores (N, C, ...), labels (N, ...)."""
    ids = array(labels)
    ignored = call.get("ignore_index")
    counted = np.ones(ids.shape, bool) if ignored is None else ids != ignored
    ids = np.where(counted, ids, 0)
    grid = np.ogrid[tuple(slice(n) for n in ids.shape)]
    picked = ops.take(scores, index=(grid[0], ids, *grid[1:]))
    factor: Any = counted.astype(array(scores).dtype)
    if weight is not None:
        factor = factor * array(weight)[ids]
    loss = ops.multiply(picked, -factor)
    how = call.get("reduction", "mean")
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
    """Return :func:`nll_loss` of the log softmax of scores over axis 1, and the log softmax."""
    logs = ops.log_softmax(scores, axis=1)
    return nll_loss(call, logs, labels, weight), logs
