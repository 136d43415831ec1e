"""Embedding layers: rows of a table by their ids, one by one or in bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Parameter, check_room, generator
from daskdl.tensor import Array, Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """Rows of a learned table, ids (...) -> (..., features).

    Parameters
    ----------
    rows, features : int
        Shape of the table, which starts with normal numbers.
    padding_index : int, optional
        Id of padding: its row is zeros and gets no gradient.
    max_norm : float, optional
        Rows longer than this are shortened to it when they are read; the table does not change. The
        gradient includes the shortening.
    seed : int, optional
        Seed of the table.
    sparse : bool
        Whether the table is trained by rows: its gradient is the :class:`~daskdl.rows.Rows` of the
        batch. Then a step and the messages of workers cost what a batch touches, not the size of
        the table. Use it if a batch touches a small part of the table; otherwise the dense gradient
        is faster. SGD and Adagrad without momentum and weight decay give the same weights either
        way. Methods with moments do not, so the default is False: moments and weight decay of a row
        wait until a batch touches it, as in PyTorch's SparseAdam. Methods without such a step are
        refused: LAMB, LARS, LBFGS, EMA and Accumulate.
    """

    def __init__(
        self,
        rows: int,
        features: int,
        padding_index: int | None = None,
        max_norm: float | None = None,
        seed: int | None = None,
        sparse: bool = False,
    ) -> None:
        name = type(self).__name__
        if padding_index is not None and not 0 <= padding_index < rows:
            raise SettingsError(
                f"{name}.padding_index: expected 0 to {rows - 1}, found {padding_index}"
                "; give the id of a row of the table"
            )
        if max_norm is not None and not max_norm > 0:
            raise SettingsError(
                f"{name}.max_norm: expected more than 0, found {max_norm}"
                "; leave it out for no limit"
            )
        self.rows, self.features = rows, features
        self.padding_index, self.max_norm = padding_index, max_norm
        check_room((rows, features))
        table = generator(seed).standard_normal((rows, features), np.float32)
        self.weight = Parameter(table, sparse=sparse)
        if padding_index is not None:
            self.weight.data[padding_index] = 0

    def forward(self, ids: Any) -> Tensor:
        """Map integer ids (...) to (..., features)."""
        ids = np.asarray(ids)
        y: Tensor = ops.embedding(self.weight, ids, padding=self.padding_index)
        if self.max_norm is not None:
            # The least square keeps the root's slope finite; such a row is not shortened.
            squares = ops.maximum(ops.sum(ops.square(y), axis=-1, keepdims=True), self.max_norm**2)
            y = y * ops.divide(self.max_norm, ops.sqrt(squares))
        return y


class EmbeddingBag(Embedding):
    """The sum or the mean of a bag's rows, ids (N, L) -> (N, features).

    Bags of fewer than L ids are padded with ``padding_index``.

    Parameters
    ----------
    rows, features, padding_index, max_norm, seed, sparse
        As :class:`Embedding`'s.
    mode : "sum", "mean" or "sqrtn"
        The sum of the rows times their weights; or the sum divided by the sum of the weights, or by
        the root of the sum of their squares.
    """

    def __init__(
        self,
        rows: int,
        features: int,
        padding_index: int | None = None,
        max_norm: float | None = None,
        seed: int | None = None,
        mode: str = "mean",
        sparse: bool = False,
    ) -> None:
        if mode not in ("sum", "mean", "sqrtn"):
            raise SettingsError(f"EmbeddingBag.mode: expected sum, mean or sqrtn, found {mode!r}")
        self.mode = mode
        super().__init__(rows, features, padding_index, max_norm, seed, sparse)

    def forward(self, ids: Any, weights: Array | None = None) -> Tensor:
        """Map integer ids (N, L), and a weight for each, to (N, features); an empty bag to 0."""
        ids = np.asarray(ids)
        if ids.ndim != 2 or (weights is not None and np.shape(weights) != ids.shape):
            raise ShapeError(
                "EmbeddingBag: expected ids of shape (N, L) and weights of the same, found "
                f"{ids.shape} and {None if weights is None else np.shape(weights)}"
            )
        rows = super().forward(ids)
        shares = np.array(np.ones(ids.shape) if weights is None else weights, rows.dtype)
        if self.padding_index is not None:
            shares = shares * (ids != self.padding_index)
        if self.mode == "mean":
            shares = _divided(shares, shares.sum(1, keepdims=True))
        elif self.mode == "sqrtn":
            shares = _divided(shares, np.sqrt((shares * shares).sum(1, keepdims=True)))
        bags = ops.matmul(shares.astype(rows.dtype, copy=False)[:, None], rows)
        return ops.reshape(bags, shape=(len(ids), self.features))


def _divided(shares: Array, total: Array) -> Array:
    return np.divide(shares, total, out=np.zeros_like(shares), where=total != 0)
