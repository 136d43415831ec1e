"""Operations that move numbers without changing them."""

from __future__ import annotations

import numpy as np

from daskdl.tensor import Array, op


@op
def reshape(x: Array, *, shape: tuple[int, ...]):  # type: ignore[no-untyped-def]
    """Give ``x`` another shape with the same number of elements."""
    return x.reshape(shape), lambda dy: (dy.reshape(x.shape),)


@op
def take(x: Array, *, index: tuple[slice | int, ...]):  # type: ignore[no-untyped-def]
    """Index with integers and slices, ``x[index]``."""

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        dx = np.zeros_like(x)
        dx[index] = dy
        return (dx,)

    return x[index], backward


@op
def concatenate(*arrays: Array, axis: int = -1):  # type: ignore[no-untyped-def]
    """Join arrays along an existing axis."""
    bounds = np.cumsum([a.shape[axis] for a in arrays])[:-1]
    return np.concatenate(arrays, axis), lambda dy: tuple(np.split(dy, bounds, axis))


def _fold(x: Array, block: int) -> Array:
    *lead, height, width, channels = x.shape
    x = x.reshape(*lead, height // block, block, width // block, block, channels)
    x = x.swapaxes(-4, -3)
    return x.reshape(*lead, height // block, width // block, block * block * channels)


def _unfold(x: Array, block: int) -> Array:
    *lead, height, width, channels = x.shape
    x = x.reshape(*lead, height, width, block, block, channels // block**2).swapaxes(-4, -3)
    return x.reshape(*lead, height * block, width * block, channels // block**2)


@op
def space_to_depth(x: Array, *, block: int):  # type: ignore[no-untyped-def]
    """Fold ``block`` x ``block`` pixels into channels: (..., H, W, C) -> (..., H/b, W/b, b*b*C)."""
    return _fold(x, block), lambda dy: (_unfold(dy, block),)


@op
def depth_to_space(x: Array, *, block: int):  # type: ignore[no-untyped-def]
    """Undo :func:`space_to_depth`: (..., H, W, b*b*C) -> (..., H*b, W*b, C)."""
    return _unfold(x, block), lambda dy: (_fold(dy, block),)
