"""Rules for layers with int8 weights; their inputs are rounded once, when they are written.

If a rule of this folder computes the input of such a layer, all readers get it as bytes. Other
results are rounded by another pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.channels import widened
from daskdl.kernels.int8.prepared import Product
from daskdl.kernels.int8.scale import MIDDLE, Scale, rows_to_bytes, scaled_rows, to_bytes
from daskdl.nn.inference.blocks import key_of
from daskdl.nn.inference.pending import Joined, Norm, Pending, Rounded, kept, used
from daskdl.nn.inference.program import memory_order
from daskdl.nn.inference.rules import extension, folded
from daskdl.nn.inference.running import Pass, array_of, rule
from daskdl.ops.int8 import unpacked
from daskdl.tensor import Array, Tensor


@rule(ops.int8_conv2d)
def int8_conv2d(
    run: Pass,
    x: Any,
    words: Any,
    scale: Any,
    bias: Any = None,
    *,
    shape: tuple[int, int, int, int],
    of_x: tuple[float, int],
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> Any:
    """Return a pending convolution with int8 weights."""
    geometry = Geometry((shape[1], shape[2]), stride, pad, dilation, groups)
    if x.ndim != 4 or x.shape[3] != shape[3] * groups or min(geometry.size(*x.shape[1:3])) < 1:
        return None  # the operation raises the error
    result = len(x), *geometry.size(*x.shape[1:3]), shape[0]
    return _waiting(run, x, (words, scale, bias), shape, geometry, Scale(*of_x), result)


@rule(ops.int8_linear)
def int8_linear(
    run: Pass,
    x: Any,
    words: Any,
    scale: Any,
    bias: Any = None,
    *,
    shape: tuple[int, int],
    of_x: tuple[float, int] | None,
) -> Any:
    """Return an affine map with int8 weights: pending, or computed now if rows have own scales."""
    if x.ndim < 2 or x.shape[-1] != shape[1]:
        return None
    window = shape[0], 1, 1, shape[1]
    if of_x is None:
        return _by_rows(run, x, (words, scale, bias), window)
    result = *x.shape[:-1], shape[0]
    return _waiting(run, x, (words, scale, bias), window, Geometry((1, 1)), Scale(*of_x), result)


def _by_rows(run: Pass, x: Any, weights: Any, shape: tuple[int, ...]) -> Tensor | None:
    words, scale, bias = (None if w is None else array_of(w) for w in weights)
    key = run.prepared.key(words, scale, bias)
    if key is None or x.dtype != np.float32 or words is None or scale is None:
        return None

    def make() -> Product:
        return Product(unpacked(words, shape), scale, None, Geometry((1, 1)), Scale(1.0, MIDDLE))

    product: Product = run.prepared.get(("int8 rows", key), make)
    numbers, scales = run.call(rows_to_bytes, run.contiguous(x))
    if not product.fits(numbers):
        numbers = run.call(widened, numbers, *product.widths)
    return Tensor(run.call(scaled_rows, run.call(product, numbers), scales, bias))


@rule(ops.fake_quantize)
def fake_quantize(run: Pass, x: Any, *, of_x: tuple[float, int], alone: bool = False) -> Any:
    """Return x, computed as bytes for all its readers."""
    scale = Scale(*of_x)
    if x.dtype != np.float32:
        return None
    extend = extension(run)
    if isinstance(x, Pending):
        if x.waiting and alone:
            x.use().round(scale)
        if x.rounded is not None:
            if x.rounded.scale == scale:
                return x
            other = extend(x.rounded, Joined(into=scale))
            return kept(Rounded(other, scale), extend, x.axes)
    array = array_of(x)
    order = memory_order(array)
    array = array if order is None else array.transpose(order)
    axes = None if order is None else tuple(int(i) for i in np.argsort(order))
    numbers = run.call(to_bytes, run.contiguous(array), *scale)
    return kept(Rounded(numbers, scale), extend, axes)


def _waiting(
    run: Pass, x: Any, weights: Any, shape: tuple[int, ...], geometry: Geometry, of_x: Scale,
    result: tuple[int, ...],
) -> Pending | None:  # fmt: skip
    words, scale, bias = (None if w is None else array_of(w) for w in weights)
    key = run.prepared.key(words, scale, bias)
    if key is None or x.dtype != np.float32 or words is None or scale is None:
        return None
    used(x)
    if isinstance(x, Pending) and x.axes is None:
        x.round(of_x)

    def prepared(norm: Norm | None, vector: Array | None) -> Product:
        def make() -> Product:
            shift = bias if vector is None else vector
            return Product(unpacked(words, shape), *folded(scale, shift, norm), geometry, of_x)

        more = key_of(run, norm), run.prepared.key(vector)
        return run.prepared.get(("int8", key, geometry, of_x, *more), make)

    def compute(joined: Joined) -> Array:
        product, residual, of_residual = prepared(joined.norm, joined.bias), joined.residual, None
        if isinstance(residual, Rounded):
            residual, of_residual = residual
        return run.call(
            product, _bytes(run, x, of_x, product), residual, of_residual, joined.low,
            joined.high, joined.into,
        )  # fmt: skip

    y = Pending(compute, extension(run), result, np.float32)
    y.gives_bytes, y.takes_bias = True, bias is None
    return y


def _bytes(run: Pass, x: Any, of_x: Scale, product: Product) -> Array:
    """Return a layer's input as bytes."""
    rounded = x.rounded if isinstance(x, Pending) else None
    if rounded is not None and rounded.scale == of_x:
        bytes_of_x = rounded.bytes if x.axes is None else rounded.bytes.transpose(x.axes)
    else:
        if run.latest is None or run.latest[0] is not x or run.latest[1].scale != of_x:
            numbers = run.call(to_bytes, run.contiguous(x), *of_x)
            run.latest = x, Rounded(numbers, of_x)
        bytes_of_x = run.latest[1].bytes
    if product.fits(bytes_of_x):
        return run.contiguous(bytes_of_x)
    y: Array = run.call(widened, bytes_of_x, *product.widths)
    return y
