"""Blocks of a Transformer: attention and a small network at each step, each around a shortcut."""

from __future__ import annotations

from typing import Any

from daskdl.errors import SettingsError
from daskdl.nn.attention.attention import MultiHeadAttention
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.norm.norms import LayerNorm
from daskdl.nn.pointwise.activations import GELU, ReLU
from daskdl.nn.pointwise.random import Dropout
from daskdl.tensor import Array, Tensor

__all__ = ["FeedForward", "TransformerBlock"]


class FeedForward(Module, pure=True):
    """Two affine maps with an activation between them, at each step: (..., C) -> (..., C).

    Parameters
    ----------
    features, hidden : int
    dropout : float
        Behind the activation.
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
        y: Tensor = self.narrow(self.dropout(self.activation(self.widen(x))))
        return y


class TransformerBlock(Module, pure=True):
    """Self-attention, attention to a memory if there is one, and a network at each step.

    A. Vaswani et al., arXiv 1706.03762. Each part has a shortcut and a layer norm: behind the sum,
    or before the part (R. Xiong et al., arXiv 2002.04745).

    Parameters
    ----------
    features, heads, hidden : int
        Of the attention, and of the network's middle.
    dropout : float
        Of attention's weights, and behind each part.
    activation : "relu" or "gelu"
    norm_first : bool
        Whether the norms stand before the parts.
    causal : bool
        Whether no step sees a later one, as in a language model or a decoder.
    cross : bool
        Whether there is a part that looks at a memory.
    eps : float
        Of the norms.
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
            What a block with ``cross`` looks at, such as an encoder's result.
        mask, key_mask
            Of the self-attention, see :class:`~daskdl.nn.MultiHeadAttention`.
        memory_mask : bool array (N, S), optional
            True where the memory is no padding.
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
        y: Tensor = norm(self.dropout(part(x)) + x)
        return y
