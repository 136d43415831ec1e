"""Sums of products by Einstein's convention."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Array, op

__all__ = ["einsum"]


@op
def einsum(*arrays: Array, equation: str):
    """Multiply and sum arrays as an equation says, such as ``"nij,njk->nik"``.

    Parameters
    ----------
    *arrays : arrays
    equation : str
        Letters for the axes of each array, after the arrow those of the result. Without an arrow
        the result has, in the order of the alphabet, the letters that occur once. ``...`` stands
        for the axes that have no letters.

    Raises
    ------
    ShapeError
        When the equation does not fit the arrays.

    Examples
    --------
    >>> ops.einsum(np.ones((2, 3)), np.ones((3, 4)), equation="ij,jk->ik").shape
    (2, 4)
    """
    inputs, output = _subscripts(equation, arrays)
    full = f"{','.join(inputs)}->{output}"
    try:
        y = np.einsum(full, *arrays, optimize=len(arrays) > 1)
    except ValueError as error:
        shapes = [a.shape for a in arrays]
        raise ShapeError(f"einsum: {equation!r} does not fit shapes {shapes}: {error}") from None

    def gradient(k: int, dy: Array) -> Array:
        own, x = inputs[k], arrays[k]
        others = [a for i, a in enumerate(arrays) if i != k]
        terms = [s for i, s in enumerate(inputs) if i != k]
        unique = "".join(dict.fromkeys(own))
        lone = "".join(c for c in unique if c not in output and not any(c in s for s in terms))
        sizes = dict(zip(own, x.shape, strict=True))
        if lone:  # summed over in this array alone: each element gets the same
            others.append(np.ones([sizes[c] for c in lone], x.dtype))
            terms.append(lone)
        equation = f"{','.join([output, *terms])}->{unique}"
        dx = np.einsum(equation, dy, *others, optimize=bool(others))
        # An axis of one element that was broadcast against longer ones gets the sum.
        stretched = tuple(i for i, c in enumerate(unique) if dx.shape[i] != sizes[c])
        dx = dx.sum(stretched, keepdims=True) if stretched else dx
        if unique == own:
            return dx.astype(x.dtype, copy=False)
        whole = np.zeros_like(x)
        np.einsum(f"{own}->{unique}", whole)[...] = dx  # a view of the diagonal
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
