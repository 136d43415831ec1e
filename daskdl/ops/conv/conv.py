"""Convolutions over one and two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.convolution import bfloat16
from daskdl.kernels.convolution import conv2d as kernel
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.bfloat16 import along
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.tiles import convolution as tiles
from daskdl.kernels.vectors.arithmetic import add_bias, bias_gradient, clear
from daskdl.tensor import Array, op

__all__ = [
    "conv1d",
    "conv2d",
]


@op
def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    stride: int = 1,
    pad: tuple[int, int] = (0, 0),
    dilation: int = 1,
    groups: int = 1,
):
    """Cross-correlate sequences with filters: a convolution over images of one row.

    Parameters
    ----------
    x : array (N, T, in)
    weight : array (out, k, in / groups)
    bias : array (out,), optional
    stride : int
    pad : (before, behind)
        Steps of zeros. With ``((k - 1) * dilation, 0)`` a result sees no later step.
    dilation : int
        Steps from one tap of the kernel to the next.
    groups : int
        Number of groups that input channels and filters are cut into.

    Returns
    -------
    array (N, steps, out)
    """
    if x.ndim != 3 or weight.ndim != 3:
        raise ShapeError(
            f"conv1d: expected x of shape (N, T, in) and weight of shape (out, k, in / groups), "
            f"found {x.shape} and {weight.shape}"
            "; add the missing axis, x[..., None] for a single channel"
        )
    images, filters = x[:, None], weight[:, None]
    geometry = Geometry((1, weight.shape[1]), (1, stride), (0, 0, *pad), (1, dilation), groups)
    check("conv1d", images, filters, bias, geometry)
    y = kernel.forward(images, filters, geometry)[:, 0]
    if bias is not None:
        add_bias(y, bias)

    def backward(dy: Array):
        rows = dy[:, None]
        return (
            lambda: kernel.input_gradient(rows, filters, geometry, 1, x.shape[1])[:, 0],
            lambda: kernel.weight_gradient(images, rows, geometry)[:, 0],
            lambda: bias_gradient(dy),
        )

    return y, backward


@op
def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
):
    """Cross-correlate images with filters, which frameworks call convolution.

    Parameters
    ----------
    x : array (N, H, W, in)
    weight : array (out, kh, kw, in / groups)
    bias : array (out,), optional
    stride : (down, across)
    pad : (above, below, left, right)
        Rows and columns of zeros.
    dilation : (down, across)
        Pixels from one tap of the kernel to the next.
    groups : int
        Number of groups that input channels and filters are cut into; with as many groups as input
        channels the convolution is depthwise.

    Returns
    -------
    array (N, rows, columns, out)
    """
    geometry = Geometry((weight.shape[1], weight.shape[2]), stride, pad, dilation, groups)
    check("conv2d", x, weight, bias, geometry)
    shape = x.shape
    picks = geometry.kernel == (1, 1) and stride != (1, 1) and not any(pad) and groups == 1
    if picks:  # one pixel of each window: copy these, and multiply once
        x, geometry = np.ascontiguousarray(x[:, :: stride[0], :: stride[1]]), Geometry((1, 1))
    y, dx_of, dw_of = _products(x, weight, geometry)
    if bias is not None:
        add_bias(y, bias)

    def to_input(dy: Array) -> Array:
        dx: Array = dx_of(dy)
        if not picks:
            return dx
        whole = empty(shape, dx.dtype)
        clear(whole.reshape(-1))
        whole[:, :: stride[0], :: stride[1]] = dx
        return whole

    def backward(dy: Array):
        return (
            lambda: to_input(dy),
            lambda: dw_of(dy),
            lambda: bias_gradient(dy),
        )

    return y, backward


def _products(x: Array, weight: Array, geometry: Geometry) -> tuple[Array, Any, Any]:
    """Return the convolution, and functions from its gradient to x's and the weights' gradients."""
    size = x.shape[1], x.shape[2]
    by = {"bf16-pairs": bfloat16, "bf16-tiles": tiles}.get(precision())
    if by is None or not by.serves(x.shape[3], weight, geometry):
        return (
            kernel.forward(x, weight, geometry),
            lambda dy: kernel.input_gradient(dy, weight, geometry, *size),
            lambda dy: kernel.weight_gradient(x, dy, geometry),
        )
    pairs = along(x)  # kept for backward, half the size of x
    rounded: list[tuple[Array, Any]] = []  # the gradient, which both functions use

    def once(dy: Array) -> Any:
        if not rounded or rounded[0][0] is not dy:
            rounded[:] = [(dy, along(dy))]
        return rounded[0][1]

    return (
        by.forward(pairs, weight, geometry, size),
        lambda dy: by.input_gradient(once(dy), weight, geometry, size),
        lambda dy: by.weight_gradient(pairs, once(dy), geometry, weight),
    )


def check(name: str, x: Array, weight: Array, bias: Array | None, geometry: Geometry) -> None:
    """Raise a ShapeError, with an operation's name, if arguments do not fit together."""
    groups = geometry.groups
    check_steps(name, geometry.stride, geometry.dilation, geometry.pad)
    if x.ndim != 4:
        raise ShapeError(
            f"{name}: expected x of shape (N, H, W, in), found {x.shape}"
            "; add the missing axis, x[..., None] for a single channel"
        )
    if groups < 1 or len(weight) % groups:
        raise ShapeError(
            f"{name}: expected groups that divide the {len(weight)} filters, found {groups}"
            "; take a divisor"
        )
    if weight.shape[3] * groups != x.shape[3]:
        raise ShapeError(
            f"{name}: expected x with {weight.shape[3] * groups} channels, "
            f"as weight {weight.shape} has them in {groups} groups, found {x.shape}"
            "; channels are the last axis, x.transpose(0, 2, 3, 1) moves them there"
        )
    check_dtypes(name, x, weight)
    if bias is not None and bias.shape != (len(weight),):
        raise ShapeError(f"{name}: expected bias of shape ({len(weight)},), found {bias.shape}")
    if min(geometry.size(*x.shape[1:3])) < 1:
        top, bottom, left, right = geometry.pad
        padded = x.shape[1] + top + bottom, x.shape[2] + left + right
        raise ShapeError(
            f"{name}: expected an image of at least {geometry.reach} after padding, found {padded}"
            "; pad more, or take a smaller kernel"
        )


def check_steps(name: str, stride: Any, dilation: Any, pad: Any) -> None:
    """Raise a SettingsError for strides and dilations below 1, and for padding below 0."""
    if min(*stride, *dilation) < 1 or min(pad) < 0:
        raise SettingsError(
            f"{name}: expected stride and dilation of at least 1 and pad of at least 0, found "
            f"{stride}, {dilation} and {pad}"
        )


def check_dtypes(name: str, x: Array, weight: Array) -> None:
    """Raise a ShapeError unless both arrays have one dtype that kernels support."""
    if x.dtype not in (np.float32, np.float64) or weight.dtype != x.dtype:
        levels = x.dtype.kind in "iu"
        raise ShapeError(
            f"{name}: expected x and weight both float32 or both float64, "
            f"found {x.dtype} and {weight.dtype}"
            + "; daskdl.data.image.Normalize makes numbers of a picture's levels"
            * levels
        )
