"""Parameter, Buffer, Frozen: tensors of a module; initial weights, drawn by the caller's seed."""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor

__all__ = ["Buffer", "Frozen", "Parameter"]


class _Room(threading.local):
    #: The limit of :func:`at_most`, if there is one, and the numbers that may still be made.
    whole: int | None = None
    left = 0


_room = _Room()


@contextmanager
def at_most(numbers: int) -> Iterator[None]:
    """Limit the parameters of modules that this thread builds to the count in a file."""
    _room.whole, _room.left = numbers, 2 * numbers  # constructors replace some tensors
    try:
        yield
    finally:
        _room.whole = None


def check_room(shape: int | tuple[int, ...]) -> None:
    """Raise a ShapeError for a tensor larger than :func:`at_most` allows, before it is made."""
    if _room.whole is None:
        return
    size = math.prod(shape) if isinstance(shape, tuple) else shape
    if size > min(_room.whole, _room.left):
        raise ShapeError(
            f"expected modules of the {_room.whole:,} numbers that the file holds, found one that "
            f"asks for shape {shape}; the file is damaged, or was made to fill the memory"
        )


def _take_room(tensor: Tensor) -> None:
    if _room.whole is not None:
        check_room(tensor.shape)
        _room.left -= tensor.data.size


class Parameter(Tensor):
    """A tensor that training changes.

    Parameters
    ----------
    data : array_like
        Copied as float32.
    requires_grad : bool
        Whether training changes it.
    sparse : bool
        Whether it is a table (N, C) that is trained by rows: then ``grad`` is None or
        :class:`~daskdl.rows.Rows`, and it is not in :attr:`Module.vector`.

    Examples
    --------
    >>> nn.Parameter(np.zeros(3)).shape
    (3,)
    """

    __slots__ = ("sparse",)

    def __init__(self, data: ArrayLike, requires_grad: bool = True, sparse: bool = False) -> None:
        super().__init__(np.array(data, np.float32), requires_grad)
        _take_room(self)
        if sparse and self.ndim != 2:
            raise ShapeError(
                f"Parameter: expected a table (N, C) with sparse=True, found shape {self.shape}"
            )
        self.sparse = sparse

    @property
    def keeps_rows(self) -> bool:
        """Whether ``grad`` is rows."""
        return self.sparse

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameter, (self.data, self.requires_grad, self.sparse)


class Buffer(Tensor):
    """A tensor that forward passes in training change in place, such as a running mean.

    It has no gradient, but belongs to the model: buffers of several shards are averaged after each
    iteration.

    Examples
    --------
    >>> from daskdl.nn import Module
    >>> class Centre(Module):
    ...     def __init__(self):
    ...         self.mean = Buffer([0.0])
    ...     def forward(self, x):
    ...         if self.training:
    ...             self.mean.data[:] = 0.9 * self.mean.data + 0.1 * np.mean(x)
    ...         return x - self.mean.data
    >>> model = Centre()
    >>> model(np.full((4, 1), 5.0, np.float32))[0]
    array([4.5], dtype=float32)
    >>> model.state_dict()
    {'mean': array([0.5], dtype=float32)}
    """

    __slots__ = ()

    def __init__(self, data: ArrayLike) -> None:
        super().__init__(np.array(data, np.float32))
        _take_room(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Buffer, (self.data,)


class Frozen(Tensor):
    """A weight that no fit changes, such as the weights of a model with adapters.

    It is in model files, but not in :attr:`Module.vector` or checkpoints: a fit sends it to each
    worker once. To exclude a :class:`Parameter` from training for a while, use
    :meth:`Module.freeze`.

    Examples
    --------
    >>> layer = nn.Linear(3, 2)
    >>> layer.weight = nn.Frozen(layer.weight.data)
    >>> layer.flat.size, sorted(layer.state_dict())
    (2, ['bias', 'weight'])
    """

    __slots__ = ()

    def __init__(self, data: ArrayLike) -> None:
        super().__init__(np.array(data, np.float32))

    def __reduce__(self) -> tuple[Any, ...]:
        return Frozen, (self.data,)


def uniform(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Parameter:
    """Draw from U(-b, b), b = 1 / sqrt(fan_in), as PyTorch's linear and conv layers."""
    check_room(shape)
    bound = 1 / math.sqrt(max(1, fan_in))
    return Parameter(rng.uniform(-bound, bound, shape))


def glorot(rng: np.random.Generator, shape: tuple[int, ...], fans: tuple[int, int]) -> Parameter:
    """Draw from U(-b, b), b = sqrt(6 / (fan_in + fan_out)) (X. Glorot and Y. Bengio, 2010)."""
    check_room(shape)
    bound = math.sqrt(6 / sum(fans))
    return Parameter(rng.uniform(-bound, bound, shape))


def zeros(shape: tuple[int, ...]) -> Parameter:
    """Return zeros."""
    return Parameter(filled(shape, 0))


def filled(shape: int | tuple[int, ...], value: float) -> NDArray[np.float32]:
    """Return an array of one number."""
    check_room(shape)
    return np.full(shape, value, np.float32)


def generator(seed: int | None) -> np.random.Generator:
    """Return the Generator of a layer; without a seed every layer and run differs."""
    try:
        return _unseeded(os.getpid()) if seed is None else np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        expected = "expected None or a whole number of at least 0"
        raise SettingsError(f"seed: {expected}, found {seed!r}") from error


@functools.cache
def _unseeded(process: int) -> np.random.Generator:
    """Return the Generator of a process for all layers without a seed.

    It is shared since making a Generator takes longer than drawing a small layer's weights. A
    forked process has another one; it would repeat its parent's numbers.
    """
    return np.random.default_rng()


def forget_bias(channels: int) -> NDArray[np.float32]:
    """Return the bias of an LSTM's gates: 1 for forget, so that it starts by remembering."""
    bias = filled(4 * channels, 0)
    bias[channels : 2 * channels] = 1
    return bias
