"""Attention, positional encodings, and blocks of a Transformer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.vectors import functions
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import generator, glorot
from daskdl.nn.core.state import next_draw
from daskdl.nn.linear import Linear
from daskdl.nn.norm import LayerNorm
from daskdl.nn.pointwise.activations import GELU, ReLU
from daskdl.nn.pointwise.random import Dropout
from daskdl.ops.pointwise.arithmetic import add
from daskdl.tensor import Array, Tensor

__all__ = ["FeedForward", "MultiHeadAttention", "PositionalEncoding", "TransformerBlock"]


class MultiHeadAttention(Module, pure=True):
    """Attention of several heads; each has its share of the channels (arXiv 1706.03762).

    Parameters
    ----------
    features : int
    heads : int
        Number of heads; each has an equal share of the features.
    dropout : float
        Dropout rate of the attention weights.
    bias : bool
    seed : int, optional
    """

    def __init__(
        self,
        features: int,
        heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        if heads < 1 or features % heads:
            raise SettingsError(
                f"MultiHeadAttention.heads: expected a divisor of the {features} features, found "
                f"{heads}"
                "; take as many heads as divide them evenly"
            )
        self.features, self.heads, self.dropout = features, heads, dropout
        rng = generator(seed)
        for name in ("query", "key", "value", "output"):
            layer = Linear(features, features, bias, seed)
            layer.weight = glorot(rng, (features, features), (features, features))
            if layer.bias is not None:
                layer.bias.data[:] = 0
            setattr(self, name, layer)

    query: Linear
    key: Linear
    value: Linear
    output: Linear

    def forward(
        self,
        query: Any,
        key: Any = None,
        value: Any = None,
        mask: Array | None = None,
        key_mask: Array | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Attend from queries to keys; return the weighted values.

        Parameters
        ----------
        query : (N, T, features)
        key, value : (N, S, features), optional
            Keys are by default the queries (self-attention), values the keys.
        mask : bool array (T, S) or (N, heads or 1, T, S), optional
            True where a query may attend.
        key_mask : bool array (N, S), optional
            True where a key is not padding.
        causal : bool
            Whether query t sees no key after t.

        Returns
        -------
        (N, T, features)
        """
        key = query if key is None else key
        value = key if value is None else value
        for x in (query, key, value):
            check_last_axis(self, x, 3, self.features)
        n, t, s = query.shape[0], query.shape[1], key.shape[1]
        seed, counter = next_draw() if self.training and self.dropout else (0, 0)
        y = ops.attention(
            self._by_head(self.query(query)),
            self._by_head(self.key(key)),
            self._by_head(self.value(value)),
            mask=_joined(self.heads, mask, key_mask, n, t, s),
            causal=causal,
            rate=self.dropout if self.training else 0.0,
            seed=seed,
            counter=counter,
        )
        joined = ops.reshape(ops.transpose(y, axes=(0, 2, 1, 3)), shape=(n, t, self.features))
        return self.output(joined)

    def _by_head(self, x: Tensor) -> Tensor:
        n, steps, features = x.shape
        split = ops.reshape(x, shape=(n, steps, self.heads, features // self.heads))
        return ops.transpose(split, axes=(0, 2, 1, 3))


def _joined(
    heads: int, mask: Array | None, key_mask: Array | None, n: int, t: int, s: int
) -> Array | None:
    """Return one mask that broadcasts to (N, heads, T, S)."""
    allowed: dict[str, tuple[Array | None, list[tuple[int, ...]]]] = {
        "mask": (mask, [(t, s), (n, 1, t, s), (n, heads, t, s)]),
        "key_mask": (key_mask, [(n, s)]),
    }
    for name, (allowing, shapes) in allowed.items():
        if allowing is not None and (allowing.shape not in shapes or allowing.dtype != bool):
            raise ShapeError(
                f"MultiHeadAttention: {name}: expected bool of shape "
                f"{' or '.join(map(str, shapes))}, found {allowing.dtype} {allowing.shape}"
            )
    if key_mask is None:
        return mask
    keys = key_mask[:, None, None]
    return keys if mask is None else keys & mask


class PositionalEncoding(Module, pure=True):
    """Add sines and cosines of each step's position, (N, T, C) -> the same shape.

    Channels 2 i and 2 i + 1 get sine and cosine of ``t / longest ** (2 i / C)`` (A. Vaswani et al.,
    arXiv 1706.03762, section 3.5).

    Parameters
    ----------
    features : int
    longest : float
        The longest wave, in units of 2 pi steps.
    """

    def __init__(self, features: int, longest: float = 10000.0) -> None:
        if longest <= 1:
            raise SettingsError(
                f"PositionalEncoding.longest: expected above 1, found {longest}"
                "; give a wavelength in steps, such as 10000"
            )
        self.features, self.longest = features, longest

    def forward(self, x: Any) -> Tensor:
        """Map x (N, T, C) to the same shape."""
        check_last_axis(self, x, 3, self.features)
        return add(x, waves(x.shape[1], self.features, self.longest).astype(x.dtype))


@lru_cache(maxsize=16)
def waves(steps: int, features: int, longest: float) -> Array:
    """Return the encoding of ``steps`` positions, float64 (steps, features)."""
    rates = functions.power(float(longest), -(np.arange(0, features, 2) / features))
    angles = np.arange(steps)[:, None] * rates
    table = np.empty((steps, features))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : features // 2]
    table.flags.writeable = False
    return table


class FeedForward(Module, pure=True):
    """Two affine maps with an activation between them, at each step: (..., C) -> (..., C).

    Parameters
    ----------
    features, hidden : int
    dropout : float
        Dropout rate after the activation.
    activation : "relu" or "gelu"
    seed : int, optional
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        dropout: float = 0.0,
        activation: str = "relu",
        seed: int | None = None,
    ) -> None:
        if activation not in ("relu", "gelu"):
            raise SettingsError(
                f"FeedForward.activation: expected relu or gelu, found {activation!r}"
            )
        self.features = features
        self.widen = Linear(features, hidden, seed=seed)
        self.activation = ReLU() if activation == "relu" else GELU()
        self.dropout = Dropout(dropout)
        self.narrow = Linear(hidden, features, seed=None if seed is None else seed + 1)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        check_last_axis(self, x, None, self.features)
        return self.narrow(self.dropout(self.activation(self.widen(x))))


class TransformerBlock(Module, pure=True):
    """Self-attention, optional attention to a memory, and a feed-forward network at each step.

    A. Vaswani et al., arXiv 1706.03762. Each part has a shortcut and a layer norm, after the sum or
    before the part (R. Xiong et al., arXiv 2002.04745).

    Parameters
    ----------
    features, heads, hidden : int
        Sizes of the attention, and of the network's hidden layer.
    dropout : float
        Dropout rate of the attention weights, and after each part.
    activation : "relu" or "gelu"
    norm_first : bool
        Whether norms come before the parts.
    causal : bool
        Whether no step sees a later one, as in a language model or a decoder.
    cross : bool
        Whether there is a part that attends to a memory.
    eps : float
        Added to the variance in the norms.
    seed : int, optional
    """

    def __init__(
        self,
        features: int,
        heads: int,
        hidden: int,
        dropout: float = 0.0,
        activation: str = "relu",
        norm_first: bool = False,
        causal: bool = False,
        cross: bool = False,
        eps: float = 1e-5,
        seed: int | None = None,
    ) -> None:
        def key(i: int) -> int | None:
            return None if seed is None else 10 * seed + i

        self.features, self.norm_first, self.causal = features, norm_first, causal
        self.attention = MultiHeadAttention(features, heads, dropout, seed=key(0))
        self.norm_attention = LayerNorm(features, eps)
        self.cross = MultiHeadAttention(features, heads, dropout, seed=key(1)) if cross else None
        self.norm_cross = LayerNorm(features, eps) if cross else None
        self.network = FeedForward(features, hidden, dropout, activation, key(2))
        self.norm_network = LayerNorm(features, eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Any,
        memory: Any = None,
        mask: Array | None = None,
        key_mask: Array | None = None,
        memory_mask: Array | None = None,
    ) -> Tensor:
        """Map x to the same shape.

        Parameters
        ----------
        x : (N, T, features)
        memory : (N, S, features)
            Memory of a block with ``cross``, such as an encoder's result.
        mask, key_mask
            Masks of the self-attention, see :class:`~daskdl.nn.MultiHeadAttention`.
        memory_mask : bool array (N, S), optional
            True where the memory is not padding.
        """
        check_last_axis(self, x, 3, self.features)
        if (memory is None) != (self.cross is None):
            raise SettingsError(
                f"TransformerBlock: expected a memory exactly if cross=True, found cross="
                f"{self.cross is not None} and memory {'None' if memory is None else memory.shape}"
                "; give the encoder's output, or make the block without cross"
            )

        def attend(y: Any) -> Tensor:
            return self.attention(y, mask=mask, key_mask=key_mask, causal=self.causal)

        x = self._around(x, self.norm_attention, attend)
        if self.cross is not None:
            cross = self.cross
            x = self._around(x, self.norm_cross, lambda y: cross(y, memory, key_mask=memory_mask))
        return self._around(x, self.norm_network, self.network)

    def _around(self, x: Any, norm: Any, part: Any) -> Tensor:
        if self.norm_first:
            return x + self.dropout(part(norm(x)))
        return norm(self.dropout(part(x)) + x)
