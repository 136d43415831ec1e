"""AdamW: Adam whose weight decay stays out of the moments."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.optim.adam import Adam


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam; beside its step the weights shrink by ``rate * weight_decay`` of themselves.

    I. Loshchilov and F. Hutter, arXiv 1711.05101. Parameters as :class:`Adam` has them.
    """

    weight_decay: float = 0.01

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return self.corrected(iteration, rate, 0.0, 1 - rate * decay)
