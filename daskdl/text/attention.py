"""Attention and networks of the blocks of MPNet and ModernBERT."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.nn import (
    Dropout,
    Embedding,
    Frozen,
    LayerNorm,
    Linear,
    Module,
    MultiHeadAttention,
    TransformerBlock,
)
from daskdl.tensor import Array, Tensor


class RelativeAttention(MultiHeadAttention):
    """Attention with a bias on each score for the distance of two words (MPNet).

    K. Song et al., arXiv 2004.09297. Unlike the base class, it computes the matrix of all scores.
    ``table`` has a number for each class of distances and head; all blocks of an encoder share it.
    """

    def __init__(self, features: int, heads: int, table: Embedding, seed: int | None) -> None:
        super().__init__(features, heads, seed=seed)
        self.table = table

    def forward(self, x: Any, **settings: Any) -> Tensor:  # type: ignore[override]  # of itself
        """Map x (N, T, features) to the same shape."""
        n, t, features = x.shape
        added = ops.transpose(self.table(distances(t, self.table.rows)), axes=(2, 0, 1))
        query, key, value = (
            self._by_head(layer(x)) for layer in (self.query, self.key, self.value)
        )
        scores = ops.matmul(query, ops.transpose(key, axes=(0, 1, 3, 2)))
        scores = scores * (1 / math.sqrt(features // self.heads)) + added
        y = ops.matmul(ops.softmax(scores), value)
        return self.output(ops.reshape(ops.transpose(y, axes=(0, 2, 1, 3)), shape=(n, t, features)))


class RotaryAttention(MultiHeadAttention):
    """Attention with rotary embeddings of places, to near words or to all (ModernBERT).

    J. Su et al., arXiv 2104.09864; B. Warner et al., arXiv 2412.13663. ``base`` sets the angles;
    ``window`` is the number of words on each side that count, 0 for all.
    """

    def __init__(
        self, features: int, heads: int, base: float, window: int, seed: int | None
    ) -> None:
        super().__init__(features, heads, bias=False, seed=seed)
        self.base, self.window = base, window

    def forward(self, x: Any, **settings: Any) -> Tensor:  # type: ignore[override]  # of itself
        """Map x (N, T, features) to the same shape."""
        n, t, features = x.shape
        cos, sin = turns(t, features // self.heads, self.base)
        query, key = (
            _turned(self._by_head(layer(x)), cos, sin) for layer in (self.query, self.key)
        )
        places = np.arange(t)
        near = abs(places[:, None] - places) <= self.window if 0 < self.window < t else None
        y = ops.attention(query, key, self._by_head(self.value(x)), mask=near)
        return self.output(ops.reshape(ops.transpose(y, axes=(0, 2, 1, 3)), shape=(n, t, features)))


class GatedNetwork(Module):
    """The gated network of a block: (gelu(a) * b) @ narrow; one linear map gives a and b.

    N. Shazeer, arXiv 2002.05202.
    """

    def __init__(self, features: int, hidden: int, seed: int | None) -> None:
        self.hidden = hidden
        self.widen = Linear(features, 2 * hidden, False, seed)
        self.narrow = Linear(hidden, features, False, None if seed is None else seed + 1)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        both = self.widen(x)
        return self.narrow(ops.gelu(both[..., : self.hidden]) * both[..., self.hidden :])


class Block(TransformerBlock):
    """A Transformer block of given parts, with norms before or after them."""

    network: Any
    norm_attention: Any
    norm_network: Any

    def __init__(
        self,
        attention: MultiHeadAttention,
        network: Module,
        norm_attention: Module,
        norm_network: Module,
        norm_first: bool,
    ) -> None:
        self.features, self.norm_first, self.causal = attention.features, norm_first, False
        self.attention, self.norm_attention = attention, norm_attention
        self.cross, self.norm_cross, self.dropout = None, None, Dropout(0.0)
        self.network, self.norm_network = network, norm_network


def unshifted(features: int, eps: float) -> LayerNorm:
    """Return a layer norm with a scale and no shift."""
    norm = LayerNorm(features, eps)
    vars(norm)["bias"] = Frozen(np.zeros(features))
    return norm


@lru_cache(maxsize=64)
def distances(steps: int, classes: int, most: int = 128) -> Array:
    """Return the class of each pair's distance, int64 (steps, steps), as in T5 and MPNet.

    Half of the classes are for later words. In each half, the first classes are for one distance
    each; the ranges of the others grow logarithmically up to ``most``.
    """
    half = classes // 2
    exact = half // 2
    places = np.arange(steps)
    ahead = places[None] - places[:, None]
    n = np.abs(ahead)
    share = np.log(np.maximum(n, 1).astype(np.float32) / np.float32(exact))
    grown = exact + (share / np.float32(math.log(most / exact)) * (half - exact)).astype(np.int64)
    return np.where(n < exact, n, np.minimum(grown, half - 1)) + half * (ahead > 0)


@lru_cache(maxsize=64)
def turns(steps: int, features: int, base: float) -> tuple[Array, Array]:
    """Return cosines and sines of the angles of each place, float32 (steps, features)."""
    # Python's power, as numpy's gives other bits with AVX-512.
    rates = np.array([base ** (-i / features) for i in range(0, features, 2)], np.float32)
    angles = np.arange(steps, dtype=np.float32)[:, None] * rates
    angles = np.concatenate([angles, angles], axis=1)
    return np.cos(angles), np.sin(angles)


def _turned(x: Any, cos: Array, sin: Array) -> Tensor:
    half = x.shape[-1] // 2
    swapped = ops.concatenate(x[..., half:] * -1.0, x[..., :half], axis=-1)
    y: Tensor = x * cos + swapped * sin
    return y
