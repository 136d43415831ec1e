"""Affine maps and products of arrays."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.tiles.matmul import product_of
from daskdl.kernels.vectors.arithmetic import add_bias, bias_gradient
from daskdl.tensor import Array, op

__all__ = [
    "det",
    "einsum",
    "linear",
    "prod",
]


def rows(x: Array) -> Array:
    """View (..., C) as (rows, C)."""
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


@op
def linear(x: Array, weight: Array, bias: Array | None):
    """Compute x @ weight.T + bias.  x (..., in), weight (out, in), bias (out,) -> (..., out).

    ``x`` is converted to the weight's dtype, for instance from the float64 of a table or from
    pixels: a product of two dtypes takes several times as long, and so do all later operations in
    float64.

    Examples
    --------
    >>> ops.linear(np.ones((2, 3)), np.ones((4, 3)), None).data
    array([[3., 3., 3., 3.],
           [3., 3., 3., 3.]])
    """
    if x.dtype.kind not in "fiub":
        raise ShapeError(
            f"linear: expected x of numbers, found {x.dtype} {x.shape}; x.astype(np.float32) makes "
            "numbers of objects"
        )
    x = x.astype(weight.dtype, copy=False)
    matmul = product_of(weight)
    y = matmul(rows(x), weight.T)
    if bias is not None:
        add_bias(y, bias)
    if x.ndim != 2:
        y = y.reshape(*x.shape[:-1], len(weight))

    def backward(dy: Array):
        return (
            lambda: matmul(rows(dy), weight).reshape(x.shape),
            lambda: matmul(rows(dy).T, rows(x)),
            lambda: bias_gradient(dy),
        )

    return y, backward


@op
def prod(x: Array, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False):
    """Multiply the elements along axes, by default all; the gradient is exact even at zeros.

    Examples
    --------
    >>> ops.prod(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    np.float32(-1.0)
    """
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = tuple(a % x.ndim for a in ((axes,) if isinstance(axes, int) else axes))
    y = np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)

    def backward(dy: Array):
        rest = tuple(a for a in range(x.ndim) if a not in axes)
        moved = x.transpose(*rest, *axes)
        rows = moved.reshape(*(x.shape[a] for a in rest), -1)
        ones = np.ones((*rows.shape[:-1], 1), x.dtype)
        before = np.cumprod(np.concatenate([ones, rows], -1)[..., :-1], -1, dtype=x.dtype)
        behind = np.concatenate([rows, ones], -1)[..., :0:-1]
        others = before * np.cumprod(behind, -1, dtype=x.dtype)[..., ::-1]
        others *= dy.reshape(*rows.shape[:-1], 1)
        return (others.reshape(moved.shape).transpose(np.argsort((*rest, *axes))),)

    return y, backward


@op
def det(x: Array):
    """Return determinants, (..., M, M) -> (...); the gradient of a singular matrix is NaN.

    Examples
    --------
    >>> ops.det(np.array([[2.0, 1.0], [1.0, 3.0]])).data.round(6)
    np.float64(5.0)
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"det: expected x of shape (..., M, M), found {x.shape}")
    y = np.asarray(np.linalg.det(x), x.dtype)

    def backward(dy: Array):
        try:
            inverse = np.linalg.inv(x)
        except np.linalg.LinAlgError:
            inverse = np.full_like(x, np.nan)
        return ((dy * y)[..., None, None] * inverse.swapaxes(-1, -2),)

    return y, backward


@op
def einsum(*arrays: Array, equation: str):
    """Multiply and sum arrays as an equation says, such as ``"nij,njk->nik"``.

    Parameters
    ----------
    *arrays : arrays
    equation : str
        Letters for the axes of each array, and after the arrow for the result's. Without an arrow
        the result has the letters that occur once, in alphabetical order. ``...`` stands for the
        axes without letters.
    """
    inputs, output = _subscripts(equation, arrays)
    full = f"{','.join(inputs)}->{output}"
    try:
        y = np.einsum(full, *arrays, optimize=len(arrays) > 1)
    except ValueError as error:
        shapes = [a.shape for a in arrays]
        raise ShapeError(f"einsum: {equation!r} does not fit shapes {shapes}: {error}") from None

    def gradient(k: int, dy: Array) -> Array:
        letters, x = inputs[k], arrays[k]
        others = [a for i, a in enumerate(arrays) if i != k]
        terms = [s for i, s in enumerate(inputs) if i != k]
        unique = "".join(dict.fromkeys(letters))
        lone = "".join(c for c in unique if c not in output and not any(c in s for s in terms))
        sizes = dict(zip(letters, x.shape, strict=True))
        if lone:  # summed only in this array: each element gets the same gradient
            others.append(np.ones([sizes[c] for c in lone], x.dtype))
            terms.append(lone)
        equation = f"{','.join([output, *terms])}->{unique}"
        dx = np.einsum(equation, dy, *others, optimize=bool(others))
        # An axis of one element that was broadcast gets the sum.
        stretched = tuple(i for i, c in enumerate(unique) if dx.shape[i] != sizes[c])
        dx = dx.sum(stretched, keepdims=True) if stretched else dx
        if unique == letters:
            return dx.astype(x.dtype, copy=False)
        whole = np.zeros_like(x)
        np.einsum(f"{letters}->{unique}", whole)[...] = dx  # a view of the diagonal
        return whole

    def backward(dy: Array):
        return tuple(lambda k=k: gradient(k, dy) for k in range(len(arrays)))

    return y, backward


def _subscripts(equation: str, arrays: tuple[Array, ...]) -> tuple[list[str], str]:
    """Return the letters of each array and of the result, with letters for ``...``."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ShapeError(
            f"einsum: expected {len(terms)} arrays for {equation!r}, found {len(arrays)}"
        )
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in equation]
    rest = [
        a.ndim - len(t.replace("...", "")) if "..." in t else 0
        for t, a in zip(terms, arrays, strict=True)
    ]
    longest = max(rest, default=0)
    if min(rest, default=0) < 0 or longest > len(spare):
        raise ShapeError(f"einsum: {equation!r} does not fit shapes {[a.shape for a in arrays]}")
    dots = "".join(spare[:longest])
    terms = [t.replace("...", dots[longest - n :]) for t, n in zip(terms, rest, strict=True)]
    if not arrow:
        letters = "".join(terms)
        output = dots + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots)
        )
    return terms, output.replace("...", dots)
