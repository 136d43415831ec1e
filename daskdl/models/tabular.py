"""TabularNet: a perceptron over the rows of a table, with numbers and embedded ids.

Embeddings of the ids: C. Guo and F. Berkhahn, Entity Embeddings of Categorical Variables, arXiv
1604.06737. Outliers are clipped smoothly as in D. Holzmüller et al., arXiv 2407.04491.
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

#: Limit of the smooth clipping, in standard deviations from the mean.
FARTHEST = 3.0


class TabularNet(Module):
    """Scores of classes, or one number, for each row of a table.

    The encoder is part of the model and its file: ``predict`` takes DataFrames with the original
    columns, and returns labels.

    Parameters
    ----------
    encoder : TableEncoder
        From :meth:`of`, or ``SampleSet.from_dataframe(frame, target=...).encoder``.
    hidden : sequence of int
        Widths of the hidden layers.
    features : int
        Length of an id's embedding.
    dropout : float
        Rate after each hidden layer.
    sparse : bool
        Whether to train embeddings by rows, see :class:`daskdl.nn.Embedding`.
    seed : int
        Seed of the initial weights.

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
            try:
                encoder = TableEncoder.from_plain(*encoder)
            except (KeyError, TypeError) as error:
                raise SettingsError(
                    "TabularNet, encoder: expected a TableEncoder, found "
                    f"{type(encoder).__name__}; TabularNet.of(frame, target=...) fits one"
                ) from error
        self.encoder = encoder
        # Arguments for the model file, as plain data.
        arguments = (encoder.plain(), tuple(hidden), features, dropout, sparse, seed)
        self.__dict__["_arguments"] = arguments, {}
        starts = np.cumsum([0, *encoder.rows])
        self._starts = starts[:-1]
        key = 100 * seed
        if encoder.rows:
            self.table = Embedding(int(starts[-1]), features, sparse=sparse, seed=key)
            self.table.weight.data *= 0.1
        widths = [encoder.numbers + features * len(encoder.rows), *hidden]
        self.linear = [Linear(a, b, seed=key + 1 + i) for i, (a, b) in enumerate(pairwise(widths))]
        self.dropout = Dropout(dropout)
        self.head = Linear(widths[-1], encoder.outputs, seed=key + 99)

    @classmethod
    def of(cls, frame: Any, *, target: str, **options: Any) -> Self:
        """Return a network for a table; one pass over the table fits the encoder.

        Parameters
        ----------
        frame : pandas.DataFrame or dask.dataframe.DataFrame
        target : str
            Column of labels or of numbers.
        **options :
            Options of :meth:`daskdl.data.tabular.TableEncoder.fit` and of the class.
        """
        for_network = {"hidden", "features", "dropout", "sparse", "seed"}
        learned = {name: value for name, value in options.items() if name not in for_network}
        encoder = TableEncoder.fit(frame, target=target, **learned)
        return cls(encoder, **{name: v for name, v in options.items() if name in for_network})

    def loss(self) -> Loss:
        """Return the loss for the target: cross entropy for classes, squared error for numbers."""
        encoder = self.encoder
        return CrossEntropyLoss() if encoder.classes else MSELoss()

    def forward(self, numbers: Any, ids: Any) -> Tensor:
        """Map numbers (N, k) and ids (N, c) to logits (N, classes), or to numbers (N, 1)."""
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
