"""AdamW: Adam whose weight decay stays out of the moments."""

from __future__ import annotations

from dataclasses import dataclass

from daskdl.optim.adam import Adam


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam; beside its step the weights shrink by ``rate * weight_decay`` of themselves.

    I. Loshchilov and F. Hutter, arXiv 1711.05101. Parameters as :class:`Adam` has them.

    Examples
    --------
    >>> method = AdamW()
    >>> weights, gradient = np.array([1.0, 2.0], np.float32), np.array([0.5, -1.0], np.float32)
    >>> after, state = method.update(weights, gradient, method.init(2), 0)
    >>> after.round(4)
    array([0.999, 2.001], dtype=float32)
    """

    weight_decay: float = 0.01

    def factors(self, iteration: int, rate: float, decay: float) -> tuple[float, ...]:
        """Return the kernel's factors."""
        return self.corrected(iteration, rate, 0.0, 1 - rate * decay)
