"""Attention, rotary positions and linear attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.operators.table import Call, Value, array, operator


def _heads(x: Value, count: int | None) -> Any:
    """Return (N, T, heads * C) as (N, heads, T, C)."""
    heads = array(x)
    if heads.ndim == 4:
        return x
    if not count or heads.shape[2] % count:
        raise SettingsError(f"expected a number of heads that divides {heads.shape}, found {count}")
    n, steps, width = heads.shape
    y = ops.reshape(x, shape=(n, steps, count, width // count))
    return ops.transpose(y, axes=(0, 2, 1, 3))


def _joined(x: Value) -> Any:
    """Return (N, heads, T, C) as (N, T, heads * C)."""
    n, heads, steps, width = array(x).shape
    return ops.reshape(ops.transpose(x, axes=(0, 2, 1, 3)), shape=(n, steps, heads * width))


def _allowed(call: Call, steps: int, total: int, past: int, valid: Value) -> Any:
    """Return the keys that a query may see by its place, bool (N or 1, 1, T, S); None for all."""
    causal = bool(call.get("is_causal", 0))
    left, right = call.get("left_window_size", -1), call.get("right_window_size", -1)
    offset = np.array([past]) if valid is None else array(valid) - steps
    mask = None
    if causal or left >= 0 or right >= 0:
        rows = np.arange(steps)[:, None] + offset[:, None, None, None]
        columns = np.arange(total)
        mask = np.ones((len(offset), 1, steps, total), bool)
        if causal:
            mask &= columns <= rows
        if left >= 0:
            mask &= columns >= rows - left
        if right >= 0:
            mask &= columns <= rows + right
    if valid is not None:
        inside = np.arange(total) < array(valid)[:, None, None, None]
        mask = inside if mask is None else mask & inside
    return mask


@operator("Attention")
def attention(
    call: Call,
    query: Value,
    key: Value,
    value: Value,
    mask: Value = None,
    past_key: Value = None,
    past_value: Value = None,
    valid: Value = None,
) -> Value:
    """Scaled dot-product attention of several heads, with a cache of keys and values."""
    joined = array(query).ndim == 3
    q = _heads(query, call.get("q_num_heads"))
    k, v = (_heads(x, call.get("kv_num_heads")) for x in (key, value))
    past = 0
    if past_key is not None:
        past = array(past_key).shape[2]
        k, v = ops.concatenate(past_key, k, axis=2), ops.concatenate(past_value, v, axis=2)
    present = k, v
    share = array(q).shape[1] // array(k).shape[1]
    if share > 1:
        k, v = (ops.repeat(x, times=share, axis=1) for x in (k, v))
    steps, total = array(q).shape[2], array(k).shape[2]
    scale = call.get("scale") or 1 / math.sqrt(array(q).shape[-1])
    scores = ops.matmul(q, ops.transpose(k, axes=(0, 1, 3, 2))) * scale
    qk_output: Any = scores
    mode = call.get("qk_matmul_output_mode", 0)
    cap = call.get("softcap", 0.0)
    if cap:
        scores = cap * ops.tanh(scores * (1 / cap))
        qk_output = scores if mode == 1 else qk_output
    dtype = array(q).dtype
    bias: Any = _allowed(call, steps, total, past, valid)
    bias = None if bias is None else np.where(bias, 0, -np.inf).astype(dtype)
    if mask is not None:
        added_mask: Any = mask
        if array(mask).dtype == bool:
            added_mask = np.where(array(mask), 0, -np.inf).astype(dtype)
        short = total - array(added_mask).shape[-1]
        if short > 0:  # keys beyond the mask's end are not seen
            widths = [(0, 0)] * (array(added_mask).ndim - 1) + [(0, short)]
            added_mask = ops.pad(added_mask, widths=widths, value=-np.inf)
        bias = added_mask if bias is None else ops.add(added_mask, bias)
    if bias is not None:
        scores = ops.add(scores, bias)
    qk_output = scores if mode == 2 else qk_output
    blind = np.isneginf(scores.data).all(-1, keepdims=True)
    if blind.any():  # a query that may see no key gets zeros
        scores = ops.where(blind, np.zeros((), dtype), scores)
        weights = ops.where(blind, np.zeros((), dtype), ops.softmax(scores))
    else:
        weights = ops.softmax(scores)
    qk_output = weights if mode == 3 else qk_output
    y = ops.matmul(weights, v)
    return _joined(y) if joined else y, *present, qk_output


@operator("RotaryEmbedding")
def rotary_embedding(
    call: Call, x: Value, cosines: Value, sines: Value, positions: Value = None
) -> Value:
    """Rotate pairs of features by angles of their position (arXiv 2104.09864)."""
    joined = array(x).ndim == 3
    heads = _heads(x, call.get("num_heads"))
    width = array(heads).shape[-1]
    turned = call.get("rotary_embedding_dim", 0) or width
    c, s = array(cosines), array(sines)
    if positions is not None:
        c, s = c[array(positions)], s[array(positions)]
    c, s = (a[..., : turned // 2] for a in (c, s))
    c, s = (a[:, None] if a.ndim == 3 else a for a in (c, s))
    part, rest = ops.split(heads, sizes=(turned, width - turned))
    if call.get("interleaved", 0):
        a, b = part[..., ::2], part[..., 1::2]
    else:
        a, b = ops.split(part, sizes=(turned // 2, turned // 2))
    first, second = c * a - s * b, s * a + c * b
    if call.get("interleaved", 0):
        part = ops.reshape(ops.stack(first, second, axis=-1), shape=part.shape)
    else:
        part = ops.concatenate(first, second)
    y = ops.concatenate(part, rest) if turned < width else part
    return _joined(y) if joined else y


@operator("LinearAttention")
def linear_attention(
    call: Call,
    query: Value,
    key: Value,
    value: Value,
    past: Value = None,
    decay: Value = None,
    rate: Value = None,
) -> Value:
    """Attention by a state (d_k, d_v); each step adds to it, with decay and delta rule."""
    rule = call.get("update_rule", "gated_delta")
    many, few = call.get("q_num_heads"), call.get("kv_num_heads")
    q, k, v = _heads(query, many), _heads(key, few), _heads(value, few)
    n, _, steps, d_k = array(k).shape
    d_v, dtype = array(v).shape[-1], array(q).dtype
    scale = call.get("scale", 0.0) or 1 / math.sqrt(d_k)
    state: Any = np.zeros((n, few, d_k, d_v), dtype) if past is None else past
    gates = None if decay is None or "gated" not in rule else ops.exp(_heads(decay, few))
    rates = None if rate is None else _heads(rate, array(rate).shape[-1])
    outputs = []
    at = (slice(None), slice(None))
    for t in range(steps):
        keys = ops.reshape(ops.take(k, index=(*at, t)), shape=(n, few, d_k, 1))
        new = ops.reshape(ops.take(v, index=(*at, t)), shape=(n, few, 1, d_v))
        if gates is not None:
            g = ops.take(gates, index=(*at, t))
            state = ops.multiply(state, ops.reshape(g, shape=(*g.shape, 1)))
        if "delta" in rule:
            seen = ops.matmul(ops.transpose(keys, axes=(0, 1, 3, 2)), state)
            b = ops.take(rates, index=(*at, t))
            new = (new - seen) * ops.reshape(b, shape=(*b.shape, 1))
        state = ops.add(state, ops.multiply(keys, new))
        wide = ops.repeat(state, times=many // few, axis=1) if many != few else state
        row = ops.reshape(ops.take(q, index=(*at, t)), shape=(n, many, 1, d_k))
        outputs.append(ops.matmul(row, wide) * scale)
    return _joined(ops.concatenate(*outputs, axis=2)), state
