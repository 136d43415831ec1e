"""Vectors of all numbers of a module, and the check that its tensors are still their views."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import attrgetter, is_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.vectors.arithmetic import clear
from daskdl.nn.core.parameter import Buffer, Parameter
from daskdl.nn.core.structure import Structure

Vector = NDArray[np.float32]
_data = attrgetter("data")


class Joined:
    """The vectors whose views are the tensors of a module.

    Each training step asks for it several times, so the last answer is checked before a new search.

    Attributes
    ----------
    whole : float32 (n + m,)
        All parameters except the tables, then all buffers.
    grad : float32 (n,)
        Gradients to these parameters.
    whole_grad : float32 (n + m,)
        The same gradients, then room for the buffers' values, which are sent with them.
    tables : dict
        Parameters that are trained by rows, by their dotted names.
    """

    def __init__(self) -> None:
        self.whole: Vector = np.empty(0, np.float32)
        self.grad: Vector = np.empty(0, np.float32)
        self.whole_grad: Vector = self.grad
        self.tables: dict[str, Parameter] = {}
        #: Attributes of modules, and lists among these, each with its last known contents.
        self._seen: list[tuple[Collection[Any], list[Any]]] = []
        self._tensors: list[Parameter | Buffer] = []
        self._views: list[NDArray[Any]] = []

    def update(self, module: Structure) -> Joined:
        """Join the tensors of a module, unless they are joined already; return this."""
        seen, stale = self._seen, False
        if not (seen and all(_same(now, then) for now, then in seen)):
            seen, tensors_of = _looked_at(module), dict(module.held())
            parameters = {n: t for n, t in tensors_of.items() if isinstance(t, Parameter)}
            self.tables = {name: p for name, p in parameters.items() if p.sparse}
            tensors: list[Parameter | Buffer] = [p for p in parameters.values() if not p.sparse]
            tensors += [t for t in tensors_of.values() if isinstance(t, Buffer)]
            stale = not _same(tensors, self._tensors)
            self._tensors = tensors
        if stale or not all(map(is_, map(_data, self._tensors), self._views)):
            if stale or any(t.data.shape != v.shape for t, v in self._pairs()):
                self._join()
            else:
                self._adopt()
        self._seen = seen  # last: another thread may be here, too
        return self

    @property
    def buffers(self) -> Vector:
        """All buffers, float32 (m,), a view of :attr:`whole`."""
        return self.whole[self.grad.size :]

    def zero_grad(self) -> None:
        """Set all gradients to zero, gradients of tables to None."""
        clear(self.grad)
        for table in self.tables.values():
            table.grad = None

    def _pairs(self) -> Iterator[tuple[Parameter | Buffer, NDArray[Any]]]:
        """Yield each tensor and its view of the vector."""
        return zip(self._tensors, self._views, strict=True)

    def _adopt(self) -> None:
        """Copy arrays that replaced views back into the views, which others may hold."""
        for tensor, view in self._pairs():
            if tensor.data is not view:
                view[...] = tensor.data
                tensor.data = view

    def _join(self) -> None:
        """Copy the tensors into a new vector, and existing gradients into another."""
        tensors = self._tensors
        parameters = [t for t in tensors if isinstance(t, Parameter)]
        self.whole, start = np.empty(sum(t.data.size for t in tensors), np.float32), 0
        self.whole_grad = empty(self.whole.size, np.float32)
        self.grad = self.whole_grad[: sum(p.data.size for p in parameters)]
        clear(self.grad)
        for tensor in tensors:
            stop = start + tensor.data.size
            self.whole[start:stop] = tensor.data.ravel()
            tensor.data = self.whole[start:stop].reshape(tensor.shape)
            if isinstance(tensor, Parameter):
                if tensor.grad is not None:
                    self.grad[start:stop] = tensor.grad.ravel()
                tensor.grad = self.grad[start:stop].reshape(tensor.shape)
            start = stop
        self._views = list(map(_data, tensors))

    def share(self, other: Joined) -> None:
        """Make the tensors views of the vector of another module with the same tensors."""
        self.whole, start = other.whole, 0
        for tensor in self._tensors:
            stop = start + tensor.data.size
            tensor.data = self.whole[start:stop].reshape(tensor.shape)
            start = stop
        self._views = list(map(_data, self._tensors))


def _looked_at(module: Structure) -> list[tuple[Collection[Any], list[Any]]]:
    """Return the objects that identify the tensors of a module and their arrays."""
    attributes = [inner.__dict__.values() for _, inner in module.modules()]
    lists = [value for values in attributes for value in values if isinstance(value, list)]
    return [(collection, list(collection)) for collection in (*attributes, *lists)]


def _same(now: Collection[Any], then: list[Any]) -> bool:
    """Return whether two collections hold the very same objects in the same order."""
    return len(now) == len(then) and all(map(is_, now, then))
