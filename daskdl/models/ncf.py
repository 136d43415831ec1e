"""Neural collaborative filtering: how likely a user is to choose an item.

X. He et al., Neural Collaborative Filtering, arXiv 1708.05031, section 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn import init
from daskdl.nn.attention.embedding import Embedding
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.tensor import Tensor

#: Pairs that pass through the layers together: intermediate results then stay in the caches.
AT_ONCE = 16384


class NeuMF(Module):
    """Logits of pairs of user and item: a generalised matrix factorisation and a perceptron.

    The factorisation multiplies ``factors`` features of both. The perceptron passes
    ``layers[0] / 2`` other features of each through linear layers with ReLU. A last linear layer
    reads both results. With the defaults, and the users and items of MovieLens-20M, this is the
    network of MLPerf 0.5: 31,832,577 parameters.

    Parameters
    ----------
    users, items : int
    factors : int
    layers : sequence of int
        Width of the perceptron's input, an even number, and of each of its layers.
    sparse : bool
        Whether to train the tables of users and items by rows, see :class:`daskdl.nn.Embedding`.
    seed : int
        Seed of the initial weights.

    Examples
    --------
    >>> model = NeuMF(users=10, items=20, factors=4, layers=(8, 4))
    >>> model.predict(np.array([[0, 3], [9, 19]])).shape
    (2,)
    """

    def __init__(
        self,
        users: int,
        items: int,
        factors: int = 64,
        layers: Sequence[int] = (256, 256, 128, 64),
        sparse: bool = False,
        seed: int = 0,
    ) -> None:
        if len(layers) < 2 or layers[0] % 2:
            raise SettingsError(
                f"NeuMF.layers: expected an even width and layers' widths, found {tuple(layers)}"
                "; half of the first layer's width goes to each of user and item"
            )
        key, half = 100 * seed, layers[0] // 2
        self.user_factors = Embedding(users, factors, sparse=sparse, seed=key)
        self.item_factors = Embedding(items, factors, sparse=sparse, seed=key + 1)
        self.user_features = Embedding(users, half, sparse=sparse, seed=key + 2)
        self.item_features = Embedding(items, half, sparse=sparse, seed=key + 3)
        for table in (
            self.user_factors, self.item_factors, self.user_features, self.item_features,
        ):  # fmt: skip
            table.weight.data *= 0.01
        self.linear = [
            Linear(below, width, seed=key + 4 + i)
            for i, (below, width) in enumerate(pairwise(layers))
        ]
        self.head = Linear(factors + layers[-1], 1, seed=key + 99)
        for i, layer in enumerate(self.linear):
            init.xavier_uniform(layer.weight, seed=key + 4 + i)

    def forward(self, pairs: Any) -> Tensor:
        """Map pairs (..., 2) of a user's and an item's id to logits (...)."""
        pairs = np.asarray(pairs.data if isinstance(pairs, Tensor) else pairs)
        if not pairs.ndim or pairs.shape[-1] != 2:
            raise ShapeError(
                f"NeuMF: expected pairs of user and item, of shape (..., 2), found {pairs.shape}"
                "; stack the two ids along the last axis"
            )
        users, items = pairs[..., 0].ravel(), pairs[..., 1].ravel()
        starts = range(0, max(1, users.size), AT_ONCE)
        logits = [self._logits(users[a : a + AT_ONCE], items[a : a + AT_ONCE]) for a in starts]
        y = ops.concatenate(*logits, axis=0) if len(logits) > 1 else logits[0]
        result: Tensor = ops.reshape(y, shape=pairs.shape[:-1])
        return result

    def _logits(self, users: Any, items: Any) -> Tensor:
        """Map ids (n,) of users and items to logits (n, 1)."""
        product = self.user_factors(users) * self.item_factors(items)
        y: Any = ops.concatenate(self.user_features(users), self.item_features(items))
        for layer in self.linear:
            y = ops.relu(layer(y))
        return self.head(ops.concatenate(product, y))
