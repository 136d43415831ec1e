"""Encoders of texts such as BERT: from words and places to a vector for each word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl import ops
from daskdl.data.ragged import Ragged
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn import Embedding, FeedForward, Identity, LayerNorm, Linear, Module, TransformerBlock
from daskdl.tensor import Tensor
from daskdl.text.attention import Block, GatedNetwork, RelativeAttention, RotaryAttention, unshifted

#: Number of words that pass through a network together.
WORDS = 16384
#: Ways to combine the vectors of a text's words.
POOLINGS = ("mean", "first", "max", "none")


class TextEncoder(Module):
    """Vectors of words for texts of one length, ids (N, T) -> (N, T, features).

    J. Devlin et al., arXiv 1810.04805; Y. Liu et al., arXiv 1907.11692, whose places begin after
    the padding's id. There is no padding: texts of one length pass together, so that a text's
    vector depends on the text only.

    Parameters
    ----------
    words : int
        Number of ids.
    features, layers, heads, hidden : int
    places : int
        Rows of the table of places: the longest text plus ``first``.
    first : int
        Row of the first word in the table of places.
    activation : "gelu" or "relu"
    eps : float
        Epsilon of the norms.
    types : int
        Number of types of texts, or 0; ids of a pair's second text are increased by ``words``.
    relative : int
        Number of classes of distances between words, as in MPNet; 0 for none.
    rotary : sequence of (float, int)
        Base and window of each block's :class:`RotaryAttention`, as in ModernBERT. Blocks then have
        norms before their parts and gated networks, and there is no table of places.
    seed : int, optional

    Examples
    --------
    >>> TextEncoder(50, 8, 2, 2, 16, places=10, seed=0)(np.array([[3, 4, 5]])).shape
    (1, 3, 8)
    """

    def __init__(
        self,
        words: int,
        features: int,
        layers: int,
        heads: int,
        hidden: int,
        places: int = 512,
        first: int = 0,
        activation: str = "gelu",
        eps: float = 1e-12,
        types: int = 0,
        relative: int = 0,
        rotary: Sequence[tuple[float, int]] = (),
        seed: int | None = None,
    ) -> None:
        def key(i: int) -> int | None:
            return None if seed is None else 100 * seed + i

        self.first, self.longest = first, places - first
        self.words = Embedding(words, features, seed=key(0))
        self.places = None if rotary else Embedding(places, features, seed=key(1))
        self.types = Embedding(types, features, seed=key(98)) if types else None
        norm = unshifted if rotary else LayerNorm
        table = Embedding(relative, heads, seed=key(99)) if relative else None

        def block(i: int, seed: int | None) -> TransformerBlock:
            if rotary:
                attention = RotaryAttention(features, heads, *rotary[i], seed)
                gated = GatedNetwork(features, hidden, seed)
                first = norm(features, eps) if i else Identity()
                return Block(attention, gated, first, norm(features, eps), True)
            if table is None:
                return TransformerBlock(
                    features, heads, hidden, 0.0, activation, eps=eps, seed=seed
                )
            network = FeedForward(features, hidden, 0.0, activation, seed)
            parts = RelativeAttention(features, heads, table, seed), network
            return Block(*parts, norm(features, eps), norm(features, eps), False)

        self.norm = norm(features, eps)
        self.blocks = [block(i, key(2 + i)) for i in range(layers)]
        self.last = norm(features, eps) if rotary else None

    def forward(self, ids: Any) -> Tensor:
        """Map ids (N, T) to (N, T, features)."""
        if len(ids.shape) != 2 or not 0 < ids.shape[1] <= self.longest:
            raise ShapeError(
                f"TextEncoder: expected ids (N, T) of 1 to {self.longest} words, found shape "
                f"{tuple(ids.shape)}; cut texts to that length"
            )
        rows = self.words.rows
        x = self.words(ids) if self.types is None else self.words(ids % rows)
        if self.types is not None:
            x = ops.add(x, self.types(ids // rows))
        if self.places is not None:
            x = ops.add(x, self.places(np.arange(self.first, self.first + ids.shape[1])))
        x = self.norm(x)
        for block in self.blocks:
            x = block(x)
        return x if self.last is None else self.last(x)


class TextHead(Module):
    """An encoder with pooling: a vector, or scores of classes, per text; ids (N, T) -> (N, C).

    Parameters
    ----------
    encoder : Module
        Maps ids (N, T) to (N, T, features).
    pooling : "mean", "first", "max" or "none"
        How to combine the words' vectors; "none" returns the encoder's result.
    unit : bool
        Whether to scale vectors to length one.
    layers : list of Module, optional
        Layers after the pooling, such as a classifier's.

    Examples
    --------
    >>> encoder = TextEncoder(50, 8, 1, 2, 16, places=10, seed=0)
    >>> vectors = TextHead(encoder, unit=True).predict(np.array([[3, 4, 5]]))
    >>> round(float((vectors**2).sum()), 6)
    1.0
    """

    def __init__(
        self,
        encoder: Module,
        pooling: str = "mean",
        unit: bool = False,
        layers: list[Module] | None = None,
    ) -> None:
        if pooling not in POOLINGS:
            raise SettingsError(f"TextHead.pooling: expected one of {POOLINGS}, found {pooling!r}")
        self.encoder, self.pooling, self.unit = encoder, pooling, unit
        self.layers = list(layers or ())

    def forward(self, ids: Any) -> Tensor:
        """Map ids (N, T), or a Ragged column of them, to (N, C)."""
        if isinstance(ids, Ragged):
            places = list(batches(ids.lengths))
            parts = [self._pooled(ids[some].padded()) for some in places]
            back = np.argsort(np.concatenate(places))
            x = ops.take(ops.concatenate(*parts, axis=0), index=(back,))
        else:
            x = self._pooled(ids)
        for layer in self.layers:
            x = layer(x)
        return ops.normalize(x, eps=1e-12) if self.unit else x

    def _pooled(self, ids: Any) -> Tensor:
        words: Tensor = self.encoder(ids)
        if self.pooling == "none":
            return words
        if self.pooling == "first":
            return words[:, 0]
        x: Tensor = (ops.mean if self.pooling == "mean" else ops.amax)(words, axis=1)
        return x


def batches(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield places of texts with equal lengths, in batches; the longest first."""
    for length in np.unique(lengths)[::-1].tolist():
        places = np.flatnonzero(lengths == length)
        size = max(1, WORDS // max(1, length))
        for start in range(0, len(places), size):
            yield places[start : start + size]


def classifier(features: int, classes: int, *between: Module, bias: bool = True) -> list[Module]:
    """Return the layers of a classifier: two linear layers with others in between."""
    first = Linear(features, features, bias, seed=0)
    return [first, *between, Linear(features, classes, seed=1)]
