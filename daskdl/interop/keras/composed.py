"""Keras layers that consist of others: attention, and a layer applied to each step."""

from __future__ import annotations

import copy
import math

from daskdl.interop.building import Value
from daskdl.interop.keras.layers import TABLE, Layer, layer
from daskdl.tensor import Array


@layer("MultiHeadAttention", several=True, mask="refuses", off="output_shape use_gate",
       keys="num_heads key_dim value_dim dropout use_bias flash_attention attention_axes "
       "seed")  # fmt: skip
def attention(of: Layer) -> Value:
    """Attend from queries to keys and values, in several heads."""
    values = [of.build.last(value).name for value in of.inputs]
    if not 2 <= len(values) <= 3 or any(value.rank != 3 for value in of.inputs):
        of.fail(f"expected 2 or 3 sequences (N, T, C), found {len(values)} inputs")
    if of.settings.get("attention_axes") not in (None, 1, [1], (1,)):
        of.fail("attention_axes: expected the axis of steps")
    queries, states, keys = values[0], values[1], values[-1]
    query = _projected(of, "query", queries, (0, 2, 1, 3))
    key = _projected(of, "key", keys, (0, 2, 3, 1))
    value = _projected(of, "value", states, (0, 2, 1, 3))
    scale = of.build.constant(1 / math.sqrt(of.integer("key_dim", least=1)))
    scores = of.add("Softmax", of.add("Mul", of.add("MatMul", query, key), scale), axis=-1)
    heads = of.build.transposed(of.add("MatMul", scores, value), (0, 2, 1, 3))
    kernel, bias = _weights(of, "output")
    joined = of.add("Reshape", heads, of.build.integers(0, 0, -1))
    y = of.add("MatMul", joined, of.weight("output/kernel", kernel.reshape(-1, kernel.shape[-1])))
    return of.result("Add", y, of.weight("output/bias", bias)) if bias is not None else Value(y, 3)


def _weights(of: Layer, role: str) -> tuple[Array, Array | None]:
    """Return kernel and bias of one of the projections."""
    names = {role, f"{role}_dense", f"attention_{role}"}
    # Keras 2 writes "query/kernel", Keras 3 "query_dense/vars/0".
    groups = [key.replace("/vars/", "/").split("/")[-2:][0] for key in of.named]
    pairs = zip(groups, of.arrays, strict=True)
    arrays = [array for group, array in pairs if group in names]
    if len(arrays) != 1 + of.flag("use_bias", True) or arrays[0].ndim != 3:
        of.fail(f"{role}: expected a kernel of 3 axes, found {[a.shape for a in arrays]}")
    return arrays[0], arrays[1] if len(arrays) > 1 else None


def _projected(of: Layer, role: str, x: str, order: tuple[int, ...]) -> str:
    """Return the projection of a sequence as (N, T, heads, C), with its axes in ``order``."""
    kernel, bias = _weights(of, role)
    weight = of.weight(f"{role}/kernel", kernel.reshape(len(kernel), -1))
    y = of.add("MatMul", x, weight)
    if bias is not None:
        y = of.add("Add", y, of.weight(f"{role}/bias", bias.reshape(-1)))
    shape = of.build.integers(0, 0, of.integer("num_heads", least=1), -1)
    return of.build.transposed(of.add("Reshape", y, shape), order)


@layer("TimeDistributed", keys="layer", mask="keeps")
def distributed(of: Layer) -> Value:
    """Apply a layer to each step (N, T, ...) alone."""
    inner = of.settings.get("layer")
    kind = inner.get("class_name") if isinstance(inner, dict) else None
    if kind not in TABLE or not isinstance(inner.get("config"), dict):
        of.fail(f"layer: expected a layer that is read, found {str(kind)[:60]}")
    build, x = of.build, of.build.last(of.x)
    any_number = build.integers(-1)
    flat = of.add("Concat", any_number, of.add("Shape", x.name, start=2), axis=0)
    single = copy.copy(of)
    single.kind, single.settings, single.mask = kind, inner["config"], ""
    single.inputs = [Value(of.add("Reshape", x.name, flat), of.rank - 1)]
    y = TABLE[kind](single)
    if not isinstance(y, Value):
        of.fail(f"layer: expected a layer with one result, found {kind}")
    y = build.last(y)
    shape = of.add("Shape", x.name, end=2), of.add("Shape", y.name, start=1)
    lengths = of.add("Concat", *shape, axis=0)
    return Value(of.add("Reshape", y.name, lengths), single.rank_of(y) + 1)
