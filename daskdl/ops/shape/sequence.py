"""Helpers of recurrent operations: checks of their arguments, and time-major arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Array

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def check(
    operation: str,
    like: tuple[str, Array],
    **arguments: tuple[Array | None, tuple[int | None, ...]],
) -> None:
    """Raise ShapeError unless each argument, given as (array, shape), has this shape.

    An argument may be None; so may a number of its shape, which then is arbitrary. ``like`` is name
    and array of the argument whose dtype, float32 or float64, all share.
    """
    leader, first = like
    if first.dtype not in FLOATS:
        raise ShapeError(
            f"{operation}: {leader}: expected float32 or float64, found {first.dtype}"
            "; .astype(np.float32) makes it so"
        )
    for name, (array, shape) in arguments.items():
        if array is None:
            continue
        fits = len(array.shape) == len(shape) and all(
            wanted in (None, actual) for wanted, actual in zip(shape, array.shape, strict=True)
        )
        if not fits:
            expected = f"({', '.join('any' if n is None else str(n) for n in shape)})"
            raise ShapeError(
                f"{operation}: {name}: expected shape {expected}, found {tuple(array.shape)}"
            )
        if array.dtype != first.dtype:
            raise ShapeError(
                f"{operation}: {name}: expected {first.dtype} as {leader} has, found {array.dtype}"
            )


def unrolled(operation: str, x: Array | None, weight: Array | None, steps: int | None) -> int:
    """Return the number of steps of ``x`` (N, T, ...) or, without an input, ``steps``."""
    if (x is None) != (weight is None):
        present, missing = ("weight_input", "x") if x is None else ("x", "weight_input")
        raise ShapeError(
            f"{operation}: {missing}: expected an array as {present} is one, found None"
            "; give both, or neither"
        )
    if x is not None:
        return x.shape[1] if x.ndim > 1 else 0
    if steps is None or steps < 1:
        raise SettingsError(
            f"{operation}: steps: expected at least 1 without x, found {steps}"
            "; say how many to make"
        )
    return int(steps)


def standard(array: Array) -> Array:
    """Return the array, or a copy if numba would compile another version for it."""
    return np.require(array, requirements=["C", "A", "W"])


def turned(weight: Array) -> Array:
    """Return the transposed matrix, C-contiguous."""
    return standard(weight.T)


def start_of(state: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a copy of a state or of a gradient; zeros for None."""
    return np.zeros(shape, dtype) if state is None else np.array(state, dtype, order="C")


class Steps:
    """The time axis of a batch.

    Parameters
    ----------
    operation : str
        Name of the operation that got ``lengths``, for its error.
    n, steps : int
    lengths : int array (N,), optional
        Steps of each sample, from its first; by default all.
    reverse : bool
        Whether a sequence is read from its last step to its first.

    Attributes
    ----------
    lengths : int64 array (N,)
    first, last : int
        Indices of the states before and after all steps, among T + 1 states.
    """

    def __init__(
        self, operation: str, n: int, steps: int, lengths: ArrayLike | None, reverse: bool
    ) -> None:
        self.reverse = bool(reverse)
        self.first, self.last = (steps, 0) if reverse else (0, steps)
        self.lengths: NDArray[np.int64] = np.full(n, steps, np.int64)
        self.ended: NDArray[np.bool_] | None = None  # (T, N), if any sample ends early
        if lengths is None:
            return
        numbers = np.asarray(lengths)
        if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
            raise ShapeError(
                f"{operation}: lengths: expected {n} whole numbers, one a sample, found "
                f"{numbers.dtype} of shape {numbers.shape}"
            )
        outside = numbers[(numbers < 0) | (numbers > steps)]
        if outside.size:
            raise ShapeError(
                f"{operation}: lengths: expected 0 to {steps}, the steps of x, found {outside[0]}"
                "; cut longer sequences first"
            )
        self.lengths = numbers.astype(np.int64)
        if (numbers < steps).any():
            self.ended = np.arange(steps)[:, None] >= self.lengths

    def major(self, x: Array) -> Array:
        """Return (N, T, C) as C-contiguous (T, N, C), zeros where a sample has ended."""
        if self.ended is None:
            return standard(x.swapaxes(0, 1))
        result = np.array(x.swapaxes(0, 1), order="C")
        result[self.ended] = 0
        return result

    def gradient(self, d_outputs: Array | None, dh: Array) -> Array:
        """Return the gradient to the outputs (N, T, C) as (T, N, C), or as (0, N, C) if None."""
        if d_outputs is None:
            return np.empty((0, *dh.shape), dh.dtype)
        return standard(d_outputs.swapaxes(0, 1))

    def around(self, state: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return states (T + 1, N, C); the first step's is ``state``, or zero, others arbitrary."""
        states = np.empty((max(self.first, self.last) + 1, *shape), dtype)
        states[self.first] = 0 if state is None else state
        return states

    def before(self, states: Array) -> Array:
        """Return the states before each step, from T + 1 states."""
        return states[1:] if self.reverse else states[:-1]

    def after(self, states: Array) -> Array:
        """Return the states after each step, from T + 1 states."""
        return states[:-1] if self.reverse else states[1:]

    def outputs(self, states: Array) -> Array:
        """Return the states after each step as (N, T, C), zeros where a sample has ended."""
        after = self.after(states)
        if self.ended is not None:
            after = after.copy()
            after[self.ended] = 0
        return after.swapaxes(0, 1)


def flat(x: Array) -> Array:
    """View (T, N, C) as (T * N, C)."""
    return x.reshape(-1, x.shape[-1])


def to_inputs(matmul: Any, d: Array, weight: Array) -> Array:
    """Return the gradient to (N, T, C) from the sums' gradient (T, N, K) and weights (K, C).

    ``matmul`` is the product of matrices.
    """
    product = matmul(flat(d), weight).reshape(*d.shape[:2], weight.shape[1])
    return product.swapaxes(0, 1)
