"""Products of int8 weights with inputs that are rounded to bytes, only for inference."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.channels import widened
from daskdl.kernels.int8.prepared import Product
from daskdl.kernels.int8.scale import (
    HIGHEST,
    LARGEST,
    MIDDLE,
    Scale,
    rows_to_bytes,
    scaled_rows,
    to_bytes,
    to_floats,
)
from daskdl.kernels.vectors.reduce import digest
from daskdl.tensor import Array, op

#: Most summands of a result.
MOST = (2**31 - 1) // (HIGHEST * (LARGEST + 1))

#: Products with packed weights, by the weights' ids.
_products: dict[int, tuple[weakref.ref[Array], Any, Product]] = {}

__all__ = ["fake_quantize", "int8_conv2d", "int8_linear"]


@op
def fake_quantize(x: Array, *, of_x: tuple[float, int], alone: bool = False):
    """Round x to the numbers of bytes: ``((round(x / s) + zero within 0 and 255) - zero) * s``.

    Parameters
    ----------
    x : float32 array
    of_x : (s, zero)
    alone : bool
        Whether nothing else reads x; then inference rounds x when it is written.

    Returns
    -------
    array of x's shape

    Raises
    ------
    SettingsError
        When a gradient is requested.
    """
    return to_floats(to_bytes(np.require(x, np.float32, ("C", "A")), *of_x), *of_x), _backward


@op
def int8_conv2d(
    x: Array,
    words: Array,
    scale: Array,
    bias: Array | None,
    *,
    shape: tuple[int, int, int, int],
    of_x: tuple[float, int],
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
):
    """Cross-correlate images with int8 filters.

    ``x`` is rounded to bytes, ``round(x / s) + zero`` within 0 and 255; sums are integers, and the
    result is ``sum * (s * scale) + bias`` in float32, rounded after each step.

    Parameters
    ----------
    x : float32 array (N, H, W, in)
    words : float32 array (n,)
        Int8 numbers (out, kh, kw, in / groups), four in the bits of a word; see :func:`packed`.
    scale : array (out,)
        Scale of each filter.
    bias : array (out,), optional
    shape : (out, kh, kw, in / groups)
    of_x : (s, zero)
    stride, pad, dilation, groups
        As in :func:`conv2d`. With groups, :func:`has_int8` says which shapes are possible.

    Returns
    -------
    array (N, rows, columns, out)

    Raises
    ------
    ShapeError
        When the channels of x do not fit, or an image is smaller than a window.
    SettingsError
        When a gradient is requested, or no kernel supports such weights.
    """
    geometry = Geometry((shape[1], shape[2]), stride, pad, dilation, groups)
    if not has_int8(shape, groups):
        raise SettingsError(
            f"int8_conv2d: expected groups of a multiple of 4 channels, or of one with one filter, "
            f"and at most {MOST} summands, found weights {shape} in {groups} groups; use conv2d"
        )
    channels = shape[3] * groups
    if x.ndim != 4 or x.shape[3] != channels or min(geometry.size(*x.shape[1:3])) < 1:
        raise ShapeError(
            f"int8_conv2d: expected x of shape (N, H, W, {channels}) with images of at least "
            f"{geometry.reach} pixels, found {x.shape}; give images of that size"
        )
    product = _kept_product(words, scale, bias, shape, geometry, Scale(*of_x))
    return _computed(product, x, of_x), _backward


@op
def int8_linear(
    x: Array,
    words: Array,
    scale: Array,
    bias: Array | None,
    *,
    shape: tuple[int, int],
    of_x: tuple[float, int] | None,
):
    """Multiply x (..., in) by int8 weights (out, in): :func:`int8_conv2d` of a point.

    Without ``of_x`` each row has its own scale, ``max |x| / 127``, and the result is
    ``(sum * scale) * row's scale + bias`` in float32, rounded after each step.

    Raises
    ------
    ShapeError
        When the last axis of x has another length.
    SettingsError
        When a gradient is requested.
    """
    if x.ndim < 2 or x.shape[-1] != shape[1]:
        raise ShapeError(
            f"int8_linear: expected x of shape (..., {shape[1]}), found {x.shape}; give rows of "
            "that many numbers"
        )
    window = shape[0], 1, 1, shape[1]
    if of_x is None:
        product = _kept_product(words, scale, None, window, Geometry((1, 1)), Scale(1.0, MIDDLE))
        numbers, scales = rows_to_bytes(np.require(x, np.float32, ("C", "A")))
        return scaled_rows(product(_widened(product, numbers)), scales, bias), _backward
    product = _kept_product(words, scale, bias, window, Geometry((1, 1)), Scale(*of_x))
    rows = np.ascontiguousarray(x).reshape(1, 1, -1, shape[1])
    return _computed(product, rows, of_x).reshape(*x.shape[:-1], shape[0]), _backward


def has_int8(shape: tuple[int, ...], groups: int = 1) -> bool:
    """Return whether kernels support weights (out, ..., in / groups) and bytes.

    Groups have a multiple of 4 channels, or one channel and one filter each, and no sum of products
    of bytes and weights overflows int32.
    """
    if min(shape) < 1 or np.prod(shape[1:]) > MOST:
        return False
    depthwise = shape[-1] == 1 and shape[0] == groups
    return groups == 1 or (len(shape) == 4 and (shape[-1] % 4 == 0 or depthwise))


def packed(weight: Array) -> Array:
    """Return int8 numbers as float32 words, four in the bits of each, with zeros at the end."""
    words: Array = np.zeros(-(-weight.size // 4), np.float32)
    words.view(np.int8)[: weight.size] = weight.reshape(-1)
    return words


def unpacked(words: Array, shape: tuple[int, ...]) -> Any:
    """Return the int8 numbers of :func:`packed` words, as a view."""
    return words.view(np.int8)[: int(np.prod(shape))].reshape(shape)


def _kept_product(
    words: Array, scale: Array, bias: Array | None, shape: tuple[int, ...], geometry: Geometry,
    of_x: Scale,
) -> Product:  # fmt: skip
    """Return a product of :func:`packed` weights, cached while they exist and do not change."""
    others = tuple(None if array is None else array.tobytes() for array in (scale, bias))
    state, key = (digest(words), others, shape, geometry, of_x), id(words)
    alive, made_of, product = _products.get(key, (None, None, None))
    if product is None or made_of != state or alive is None or alive() is not words:
        product = Product(unpacked(words, shape), scale, bias, geometry, of_x)
        _products[key] = weakref.ref(words, lambda _: _products.pop(key, None)), state, product
    return product


def _computed(product: Product, x: Array, of_x: tuple[float, int]) -> Array:
    return product(_widened(product, to_bytes(np.require(x, np.float32, ("C", "A")), *of_x)))


def _widened(product: Product, x: Array) -> Array:
    return x if product.fits(x) else widened(x, *product.widths)


def _backward(dy: Array) -> Any:
    raise SettingsError(
        "int8: expected a model in inference, found one that is trained; train the float32 model, "
        "and quantize it anew"
    )
