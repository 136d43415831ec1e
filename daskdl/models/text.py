"""Text classifier: word vectors, an encoder of their sequence, and a classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl import ops
from daskdl.data.text.padding import lengths_of
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.attention.embedding import Embedding
from daskdl.nn.conv.conv import Conv1d
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.pointwise.random import Dropout
from daskdl.nn.recurrent.recurrent import GRU, LSTM
from daskdl.ops.pointwise.activations import log_softmax
from daskdl.ops.pool.pooling import global_max_pool2d
from daskdl.tensor import Tensor


class TextClassifier(Module):
    """Log-probabilities of classes for the ids of a text's words; id 0 after them is padding.

    The encoder's result goes through two linear layers with a ReLU between them. Padding does not
    change the result, and costs almost nothing if all texts of a batch have it. For a text without
    words the encoder returns zeros.

    Y. Kim, Convolutional Neural Networks for Sentence Classification, arXiv 1408.5882, for "cnn",
    with one width of windows; S. Hochreiter and J. Schmidhuber, 1997, for "lstm"; K. Cho et al.,
    arXiv 1406.1078, for "gru".

    Parameters
    ----------
    words : int
        Number of ids, with padding and unknown: ``len(vocabulary)``.
    classes : int
    features : int
        Length of a word's vector.
    encoder : "lstm", "gru" or "cnn"
        The last state of a recurrent layer, or the maximum over the text of each channel of a
        convolution.
    channels : int
        Channels of the encoder's result.
    hidden : int
        Width of the linear layer after the encoder.
    dropout : float
        Rate for word vectors and for the hidden layer.
    kernel_size : int
        Size of the convolution, in words.
    sparse : bool
        Whether to train word vectors by rows, see :class:`daskdl.nn.Embedding`.
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = TextClassifier(words=50, classes=3, features=8, encoder="cnn", channels=8, hidden=8)
    >>> model.predict(np.array([[1, 2, 3, 4, 5, 6, 0, 0]])).shape
    (1, 3)
    """

    def __init__(
        self,
        words: int,
        classes: int,
        features: int = 100,
        encoder: str = "lstm",
        channels: int = 128,
        hidden: int = 128,
        dropout: float = 0.2,
        kernel_size: int = 5,
        sparse: bool = False,
        seed: int = 0,
    ) -> None:
        key = 4 * seed
        self.embedding = Embedding(words, features, padding_index=0, sparse=sparse, seed=key)
        self.embedding.weight.data *= 0.1
        self.encoder: Module
        if encoder == "cnn":
            self.encoder = Conv1d(features, channels, kernel_size, padding="same", seed=key + 1)
        elif encoder in ("lstm", "gru"):
            layer = LSTM if encoder == "lstm" else GRU
            self.encoder = layer(features, channels, returns="last", seed=key + 1)
        else:
            raise SettingsError(
                f"TextClassifier.encoder: expected lstm, gru or cnn, found {encoder!r}"
            )
        self.dropout = Dropout(dropout)
        self.hidden = Linear(channels, hidden, seed=key + 2)
        self.head = Linear(hidden, classes, seed=key + 3)

    def load_vectors(self, table: ArrayLike) -> TextClassifier:
        """Set the word vectors (words, features); ``freeze("embedding")`` then keeps them.

        Raises
        ------
        ShapeError
            When the table has another shape.
        """
        table, weights = np.asarray(table, np.float32), self.embedding.weight.data
        if table.shape != weights.shape:
            raise ShapeError(
                "TextClassifier.load_vectors: expected vectors of shape (words, features) = "
                f"{weights.shape}, found {table.shape}"
                "; make the model with this size of vocabulary and features"
            )
        weights[...] = table
        return self

    def forward(self, ids: Any) -> Tensor:
        """Map integer ids (N, T) to log-probabilities (N, classes)."""
        ids = np.asarray(ids.data if isinstance(ids, Tensor) else ids)
        if ids.ndim != 2:
            raise ShapeError(
                f"TextClassifier: expected ids of shape (N, T), found {ids.shape}"
                "; pad sentences to one length"
            )
        lengths = lengths_of(ids)
        ids = ids[:, : max(1, int(lengths.max(initial=0)))]
        if isinstance(self.encoder, Conv1d):
            vectors = self.dropout(self.embedding(ids))
            inside = np.arange(ids.shape[1]) < lengths[:, None]
            encoded = ops.relu(self.encoder(vectors)) * inside[..., None].astype(vectors.dtype)
            n, steps, channels = encoded.shape
            y = global_max_pool2d(ops.reshape(encoded, shape=(n, steps, 1, channels)))
        else:  # steps first in memory, the layout of recurrent layers
            vectors = self.dropout(self.embedding(ids.T))
            y = self.encoder(ops.transpose(vectors, axes=(1, 0, 2)), lengths=lengths)
        y = ops.relu(self.dropout(self.hidden(y)))
        result: Tensor = log_softmax(self.head(y))
        return result
