"""Layers of several inputs, or of several results."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import DaskdlError, SettingsError, ShapeError
from daskdl.nn.core.module import Module
from daskdl.tensor import Tensor

__all__ = [
    "Add",
    "Average",
    "CosineSimilarity",
    "Divide",
    "Dot",
    "Join",
    "MatMul",
    "Maximum",
    "Minimum",
    "Multiply",
    "PairwiseDistance",
    "Pick",
    "Split",
    "Stack",
    "Subtract",
]


class _Merge(Module, pure=True):
    """Base of layers that combine inputs, given one by one or as a tuple, by an operation."""

    _operation: Callable[..., Any]

    def forward(self, *inputs: Any) -> Tensor:
        """Map arrays that broadcast to one."""
        arrays = _arrays(self, inputs)
        with _naming(self, arrays):
            return functools.reduce(type(self)._operation, arrays)


class Add(_Merge):
    """The sum of all inputs."""

    _operation = ops.add


class Subtract(_Merge):
    """The first input minus all others."""

    _operation = ops.subtract


class Multiply(_Merge):
    """The product of all inputs."""

    _operation = ops.multiply


class Divide(_Merge):
    """The first input divided by all others."""

    _operation = ops.divide


class Maximum(_Merge):
    """The largest of all inputs, element by element."""

    _operation = ops.maximum


class Minimum(_Merge):
    """The smallest of all inputs, element by element."""

    _operation = ops.minimum


class Average(_Merge):
    """The mean of all inputs, element by element."""

    _operation = ops.add

    def forward(self, *inputs: Any) -> Tensor:
        """Map arrays that broadcast to one."""
        arrays = _arrays(self, inputs)
        return super().forward(*arrays) * (1 / len(arrays))


class MatMul(_Merge):
    """The matrix product of all inputs over their last two axes."""

    _operation = ops.matmul


class Dot(Module, pure=True):
    """The inner product of two inputs over their last axis, (..., C) twice -> (...)."""

    def forward(self, *inputs: Any) -> Tensor:
        """Map two arrays to one."""
        return ops.sum(ops.multiply(*_two(self, inputs)), axis=-1)


class CosineSimilarity(Module, pure=True):
    """The cosine of the angle between two inputs over their last axis, (..., C) twice -> (...)."""

    def __init__(self, eps: float = 1e-8) -> None:
        self.eps = eps

    def forward(self, *inputs: Any) -> Tensor:
        """Map two arrays to one."""
        first, second = (ops.normalize(x, eps=self.eps) for x in _two(self, inputs))
        return ops.sum(first * second, axis=-1)


class PairwiseDistance(Module, pure=True):
    """The distance of two inputs over their last axis, (..., C) twice -> (...).

    Parameters
    ----------
    p : float
        Order of the norm: 2 for Euclid's, 1 for the sum of magnitudes; above 0 and finite.
    eps : float
        Added to each difference, so that the slope at 0 is finite.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6) -> None:
        if not 0 < p < math.inf:
            raise SettingsError(f"PairwiseDistance: expected p > 0 and finite, found {p}")
        self.p, self.eps = p, eps

    def forward(self, *inputs: Any) -> Tensor:
        """Map two arrays to one."""
        difference = ops.abs(ops.subtract(*_two(self, inputs)) + self.eps)
        total = ops.sum(ops.power(difference, exponent=self.p), axis=-1)
        return ops.power(total, exponent=1 / self.p)


class Join(Module, pure=True):
    """Join all inputs along an axis, by default the channels."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, *inputs: Any) -> Tensor:
        """Map arrays that differ in one axis to one."""
        arrays = _arrays(self, inputs)
        with _naming(self, arrays):
            return ops.concatenate(*arrays, axis=self.axis)


class Stack(Module, pure=True):
    """Join all inputs along a new axis."""

    def __init__(self, axis: int = 1) -> None:
        self.axis = axis

    def forward(self, *inputs: Any) -> Tensor:
        """Map arrays of one shape to one."""
        arrays = _arrays(self, inputs)
        with _naming(self, arrays):
            return ops.stack(*arrays, axis=self.axis)


class Split(Module, pure=True):
    """Split the input into pieces along an axis, by default the channels.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of the pieces.
    axis : int
    """

    def __init__(self, sizes: Sequence[int], axis: int = -1) -> None:
        self.sizes, self.axis = tuple(sizes), axis

    def forward(self, x: Any) -> tuple[Tensor, ...]:
        """Map one array to a tuple."""
        if not -len(x.shape) <= self.axis < len(x.shape) or sum(self.sizes) != x.shape[self.axis]:
            raise ShapeError(
                f"Split: expected {sum(self.sizes)} places in axis {self.axis}, found shape "
                f"{tuple(x.shape)}"
            )
        return ops.split(x, sizes=self.sizes, axis=self.axis)


class Pick(Module, pure=True):
    """Take one of several inputs by its number, such as the outputs of an LSTM."""

    def __init__(self, index: int = 0) -> None:
        self.index = index

    def forward(self, *inputs: Any) -> Any:
        """Return the input."""
        arrays = _arrays(self, inputs)
        if not -len(arrays) <= self.index < len(arrays):
            raise ShapeError(
                f"Pick: expected an input number {self.index}, found {len(arrays)}"
                "; count inputs from 0"
            )
        return arrays[self.index]


@contextmanager
def _naming(layer: Module, arrays: tuple[Any, ...]) -> Iterator[None]:
    """Replace numpy's error about shapes by one that names the layer."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, DaskdlError):
            raise
        shapes = ", ".join(str(np.shape(x)) for x in arrays)
        raise ShapeError(
            f"{type(layer).__name__}: expected inputs that fit each other, found shapes {shapes}"
            "; reshape or project one of them first"
        ) from error


def _arrays(layer: Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs, which may also be one tuple."""
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        inputs = tuple(inputs[0])
    if not inputs:
        raise ShapeError(
            f"{type(layer).__name__}: expected at least 1 input, found none"
            "; give a tuple of tensors"
        )
    return inputs


def _two(layer: Module, inputs: tuple[Any, ...]) -> tuple[Any, Any]:
    arrays = _arrays(layer, inputs)
    if len(arrays) != 2 or arrays[0].shape != arrays[1].shape:
        raise ShapeError(
            f"{type(layer).__name__}: expected two inputs of one shape, found "
            f"{', '.join(str(tuple(x.shape)) for x in arrays)}"
            "; reshape or project one of them first"
        )
    return arrays[0], arrays[1]
