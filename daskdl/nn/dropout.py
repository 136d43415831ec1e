"""Dropout layers: what they leave out is drawn anew in each forward pass of training."""

from __future__ import annotations

from typing import Any

from daskdl.errors import SettingsError
from daskdl.nn.draws import next_draw
from daskdl.nn.module import Module
from daskdl.ops.dropout import dropout
from daskdl.tensor import Tensor


class Dropout(Module):
    """Set a part of all numbers to zero and scale the others up; in inference nothing.

    N. Srivastava et al., JMLR 15 (2014). The draws are those of :func:`daskdl.nn.draws.drawing`,
    which a Trainer seeds for each iteration and shard.

    Parameters
    ----------
    rate : float
        The part, from 0 to 1.
    """

    def __init__(self, rate: float = 0.5) -> None:
        if not 0 <= rate <= 1:
            raise SettingsError(f"Dropout: expected 0 <= rate <= 1, found {rate!r}")
        self.rate = rate

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        seed, counter = next_draw() if self.training else (0, 0)
        y: Tensor = dropout(x, rate=self.rate if self.training else 0, seed=seed, counter=counter)
        return y
