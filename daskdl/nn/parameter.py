"""Parameter and Buffer: the tensors of a module that training changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.errors import ShapeError
from daskdl.tensor import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that training changes.

    Parameters
    ----------
    data : array_like
        Copied, as float32.
    requires_grad : bool
        Whether training changes it.
    sparse : bool
        Whether it is a table (N, C) that is trained by rows: ``grad`` is None or
        :class:`~daskdl.rows.Rows`, and it lies outside of :attr:`Module.vector`.
    """

    __slots__ = ("sparse",)

    def __init__(self, data: ArrayLike, requires_grad: bool = True, sparse: bool = False) -> None:
        super().__init__(np.array(data, np.float32), requires_grad)
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
    """A tensor that forward passes of training change in place, such as a running mean.

    It has no gradient, but it is a part of the model: where several shards train, their buffers are
    averaged after each iteration.
    """

    __slots__ = ()

    def __init__(self, data: ArrayLike) -> None:
        super().__init__(np.array(data, np.float32))

    def __reduce__(self) -> tuple[Any, ...]:
        return Buffer, (self.data,)
