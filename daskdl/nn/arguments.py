"""Checks of the settings and inputs of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.errors import ShapeError

#: One number for all axes, or one for each.
Sizes = int | Sequence[int]

_LEADING = {3: "NT", 4: "NHW", 5: "NTHW"}


def sizes(name: str, value: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """Return ``count`` numbers; one stands for all of them."""
    given = (value,) * count if isinstance(value, int) else value
    if (
        not isinstance(given, (tuple, list))
        or len(given) != count
        or any(isinstance(n, bool) or not isinstance(n, int) or n < least for n in given)
    ):
        many = "a pair" if count == 2 else str(count)
        raise ShapeError(
            f"{name}: expected an integer >= {least} or {many} of them, found {value!r}"
        )
    return tuple(given)


def pair(name: str, value: int | Sequence[int], least: int = 1) -> tuple[int, int]:
    """Return ``value`` for (rows, columns); one number stands for both."""
    first, second = sizes(name, value, 2, least)
    return first, second


def sides(name: str, value: Any, count: int) -> tuple[int, ...]:
    """Return 2 * count numbers, before and behind of each axis.

    One number stands for all, one for each axis for both its sides.
    """
    if isinstance(value, (tuple, list)) and len(value) == 2 * count:
        return sizes(name, value, 2 * count, least=0)
    return tuple(n for n in sizes(name, value, count, least=0) for _ in range(2))


def check_last_axis(layer: object, x: Any, ndim: int | None, features: int) -> None:
    """Raise a ShapeError unless ``x`` has ``ndim`` axes (None: any) and ``features`` channels."""
    shape = x.shape
    if (ndim is None or len(shape) == ndim) and shape and shape[-1] == features:
        return
    leading = "..." if ndim is None else ", ".join(_LEADING.get(ndim, "N"))
    raise ShapeError(
        f"{type(layer).__name__}: expected an input of shape ({leading}, {features}), channels "
        f"last, found {tuple(shape)}"
    )


def check_axes(layer: object, x: Any, axes: str) -> None:
    """Raise a ShapeError unless ``x`` has one axis for each name of ``axes``, as in "N H W C"."""
    if len(x.shape) != len(axes.split()):
        raise ShapeError(
            f"{type(layer).__name__}: expected an input of shape ({', '.join(axes.split())}), "
            f"found {tuple(x.shape)}"
        )
