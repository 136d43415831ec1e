"""Scaled dot-product attention and its gradients, with memory that is linear in the steps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.attention.backward import backward
from daskdl.kernels.attention.forward import TOGETHER, forward
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of
from daskdl.kernels.tiles.trusted import usable
from daskdl.kernels.vectors.dropout import words

Array = NDArray[np.floating]


class Weighing(NamedTuple):
    """Settings of attention: which keys a query sees, dropout, and the precision of products.

    The mask is None, or a bool array that broadcasts to (..., T, S); dropout uses rate, seed and
    counter.
    """

    mask: NDArray[np.bool_] | None = None
    causal: bool = False
    rate: float = 0.0
    seed: int = 0
    counter: int = 0
    precision: str = "float32"


class Saved(NamedTuple):
    """Arrays that gradients need: inputs, result, and each row's largest score and sum."""

    query: Array
    key: Array
    value: Array
    result: Array
    stats: Array


def attention(query: Array, key: Array, value: Array, how: Weighing) -> tuple[Array, Saved]:
    """Return the means of values (..., T, D), in the memory order of the queries.

    Queries (..., T, C), keys (..., S, C) and values (..., S, D) are all float32 or all float64.
    Leading axes broadcast; T and S are not 0.
    """
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    q, k, v = (_four(x, lead) for x in (query, key, value))
    (outer, inner, t, c), (s, d) = q.shape, v.shape[2:]
    y = _like(q, (outer, inner, t, d))
    stats = np.empty((outer * inner, t, 2), q.dtype)
    plan, arguments = _laid_out((q, k, v, y), how, lead)
    blocks, work = -(-t // TOGETHER), 2.0 * TOGETHER * s * (c + d)
    over_range(forward, outer * inner * blocks, least_of(work), plan, *arguments, stats)
    return y.reshape(*lead, t, d), Saved(q, k, v, y, stats)


def gradients(dy: Array, saved: Saved, how: Weighing) -> tuple[Array, Array, Array]:
    """Return the gradients to queries, keys and values, with all leading axes."""
    q, k, v, y, stats = saved
    lead = dy.shape[:-2]
    new = [_like(x, x.shape) for x in (q, k, v)]
    slope = _four(dy.astype(q.dtype, copy=False), lead)  # a name: the plan keeps only its address
    plan, arguments = _laid_out((q, k, v, y, slope, *new), how, lead)
    heads, work = len(stats), 5.0 * q.shape[2] * k.shape[2] * (q.shape[3] + v.shape[3])
    over_range(backward, heads, least_of(work), plan, *arguments, stats)
    dq, dk, dv = (x.reshape(*lead, *x.shape[2:]) for x in new)
    return dq, dk, dv


def _four(x: Array, lead: tuple[int, ...]) -> Array:
    """Return an array with two leading axes and contiguous rows."""
    whole = (*lead, *x.shape[-2:])
    if x.shape[-1] > 1 and x.strides[-1] != x.itemsize:
        x = np.ascontiguousarray(x)
    if any(step % x.itemsize for step in x.strides):
        x = x.copy()
    x = np.broadcast_to(x, whole)
    if len(lead) < 2:
        return x.reshape((1,) * (2 - len(lead)) + whole) if not lead else x[None]
    return x if len(lead) == 2 else x.reshape(-1, *whole[-3:])


def _like(x: Array, shape: tuple[int, ...]) -> Array:
    """Return memory of a shape (A, B, T, C) whose axes are ordered as in ``x``."""
    order = sorted(range(3), key=lambda axis: -x.strides[axis])
    places = empty((*(shape[axis] for axis in order), shape[3]), x.dtype)
    return places.transpose(*np.argsort(order), 3)


def _laid_out(arrays: tuple[Array, ...], how: Weighing, lead: tuple[int, ...]) -> Any:
    """Return the plan and the other arguments of a kernel."""
    q, _, v = arrays[:3]
    (outer, inner, t, c), (s, d) = q.shape, v.shape[2:]
    if how.mask is None:
        mask, steps = np.zeros(1, np.uint8), [0] * 4
    else:
        wide = np.broadcast_to(how.mask, (*lead, t, s))
        if len(lead) > 2:
            wide = wide.reshape(outer, inner, t, s)
        mask, steps = _flat(wide)
    plan = np.array(
        [
            inner, t, s, c, d, how.causal, how.mask is not None, how.rate > 0, *steps,
            *(number for x in arrays for number in (_address(x), *x.strides[:3])),
        ],
        np.int64,
    )  # fmt: skip
    scales = 1 / math.sqrt(c), 1 / (1 - how.rate) if how.rate < 1 else 0
    settings = np.array(scales, q.dtype)
    kind = np.zeros(1, q.dtype)
    if q.dtype == np.float32 and how.precision != "float32":
        tiles = how.precision == "bf16-tiles"
        kind = np.full(1, usable(), np.int32) if tiles else np.zeros(1, np.uint32)
    draws = words(how.seed, how.counter), np.uint64(round(how.rate * 2**32))
    return plan, (settings, kind, mask, draws)


def _flat(mask: Any) -> tuple[NDArray[np.uint8], list[int]]:
    """Return a mask's numbers as a vector, each once, and the steps along all four axes."""
    once = tuple(slice(None) if step else slice(0, 1) for step in mask.strides)
    once_each = np.array(mask[once], order="C")
    steps = [a if b else 0 for a, b in zip(once_each.strides, mask.strides, strict=True)]
    return once_each.reshape(-1).view(np.uint8), [0] * (4 - len(steps)) + steps


def _address(x: Array) -> int:
    return x.__array_interface__["data"][0]
