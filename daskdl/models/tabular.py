"""TabularNet: rows of a table of mixed columns, as numbers and embedded ids, through a perceptron.

Embeddings of the ids: C. Guo and F. Berkhahn, Entity Embeddings of Categorical Variables, arXiv
1604.06737. Numbers far from the mean are drawn in as D. Holzmüller et al., arXiv 2407.04491, do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from daskdl import ops
from daskdl.data.tabular.encoder import TableEncoder
from daskdl.errors import SettingsError
from daskdl.nn.attention.embedding import Embedding
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.losses import CrossEntropyLoss, Loss, MSELoss
from daskdl.nn.pointwise.random import Dropout
from daskdl.tensor import Tensor

#: Standard deviations that no number gets beyond, however far it is from the mean.
FARTHEST = 3.0


class TabularNet(Module):
    """Scores of classes, or one number, of the rows of a table.

    Its encoder is part of it, and of its model file: ``predict`` takes DataFrames as they were when
    it was fitted, and gives labels back.

    Parameters
    ----------
    encoder : TableEncoder
        What :meth:`of` fits, or ``SampleSet.from_dataframe(frame, target=...).encoder``.
    hidden : sequence of int
        Outputs of the hidden layers.
    features : int
        Of the embedding of an id.
    dropout : float
        Behind each hidden layer.
    sparse : bool
        Whether embeddings are trained by rows, see :class:`daskdl.nn.Embedding`.
    seed : int
        Of the initial weights.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20.0, 30.0, 40.0], "ok": ["no", "no", "yes"]})
    >>> model = TabularNet.of(frame, target="ok")
    >>> model.predict_class(frame[["age"]]).isin(["no", "yes"]).all()
    np.True_
    """

    def __init__(
        self,
        encoder: TableEncoder | Sequence[Any],
        hidden: Sequence[int] = (256, 128),
        features: int = 8,
        dropout: float = 0.1,
        sparse: bool = False,
        seed: int = 0,
    ) -> None:
        if not isinstance(encoder, TableEncoder):
            encoder = _read(encoder)
        self.encoder = encoder
        # What a model file keeps, which is plain data.
        kept = (encoder.plain(), tuple(hidden), features, dropout, sparse, seed)
        self.__dict__["_arguments"] = kept, {}
        starts = np.cumsum([0, *encoder.rows])
        self._starts = starts[:-1]
        key = 100 * seed
        if encoder.rows:
            self.table = Embedding(int(starts[-1]), features, sparse=sparse, seed=key)
            self.table.weight.data *= 0.1
        ends = [encoder.numbers + features * len(encoder.rows), *hidden]
        self.linear = [Linear(a, b, seed=key + 1 + i) for i, (a, b) in enumerate(pairwise(ends))]
        self.dropout = Dropout(dropout)
        self.head = Linear(ends[-1], encoder.outputs, seed=key + 99)

    @classmethod
    def of(cls, frame: Any, *, target: str, **options: Any) -> Self:
        """Return a network for a table, whose columns it learns in one pass.

        Parameters
        ----------
        frame : pandas.DataFrame or dask.dataframe.DataFrame
        target : str
            Column of labels or of numbers.
        **options :
            Those of :meth:`daskdl.data.tabular.TableEncoder.fit` and of the class.
        """
        for_network = {"hidden", "features", "dropout", "sparse", "seed"}
        learned = {name: value for name, value in options.items() if name not in for_network}
        encoder = TableEncoder.fit(frame, target=target, **learned)
        return cls(encoder, **{name: v for name, v in options.items() if name in for_network})

    def loss(self) -> Loss:
        """Return the loss that fits the target: of classes, or of numbers by their variance."""
        encoder = self.encoder
        return CrossEntropyLoss() if encoder.classes else MSELoss()

    def forward(self, numbers: Any, ids: Any) -> Tensor:
        """Map numbers (N, k) and ids (N, c) to (N, classes), or to (N, 1) of numbers."""
        parts: list[Any] = []
        if numbers.shape[-1]:
            far = ops.sqrt(ops.square(numbers) * (1 / FARTHEST**2) + 1)
            parts.append(ops.divide(numbers, far))
        if self._starts.size:
            vectors = self.table(ops.add(ids, self._starts))
            width = vectors.shape[1] * vectors.shape[2]
            parts.append(ops.reshape(vectors, shape=(vectors.shape[0], width)))
        y = ops.concatenate(*parts) if len(parts) > 1 else parts[0]
        for layer in self.linear:
            y = self.dropout(ops.relu(layer(y)))
        y = self.head(y)
        if self.encoder.classes:
            return y
        result: Tensor = y * self.encoder.scale + self.encoder.mean
        return result


def _read(parts: Sequence[Any]) -> TableEncoder:
    try:
        return TableEncoder.from_plain(*parts)
    except (KeyError, TypeError) as error:
        raise SettingsError(
            f"TabularNet, encoder: expected a TableEncoder, found {type(parts).__name__}; "
            "TabularNet.of(frame, target=...) fits one"
        ) from error
