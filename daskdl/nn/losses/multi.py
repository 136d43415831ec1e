"""MultiLoss: the weighted sum of several losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.losses.loss import Loss, parts
from daskdl.tensor import Tensor

__all__ = ["MultiLoss"]


class MultiLoss(Loss):
    """The weighted sum of several losses, of one prediction or of one each.

    Parameters
    ----------
    losses : sequence of Loss
    weights : a number for each, optional
        All 1 by default.
    paired : bool
        Whether prediction and target are tuples with an item for each loss; otherwise all compare
        the same two.

    Raises
    ------
    SettingsError
        When there is no loss, or not a weight for each.

    Examples
    --------
    >>> from daskdl.nn.losses import L1Loss, MSELoss
    >>> float(MultiLoss([MSELoss(), L1Loss()], [1.0, 0.5])([[2.0]], [[0.0]]))
    5.0
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        weights: Sequence[float] | None = None,
        paired: bool = False,
    ) -> None:
        weights = [1.0] * len(losses) if weights is None else list(weights)
        if not losses or len(weights) != len(losses):
            raise SettingsError(
                f"MultiLoss: expected a weight for each of at least 1 loss, found {len(losses)} "
                f"losses and weights {weights}"
                "; give as many weights as losses"
            )
        self.losses = list(losses)
        self._weights = weights
        self.paired = paired

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Add up what the losses find."""
        n = len(self.losses)
        predictions, targets = (prediction,) * n, (target,) * n
        if self.paired:
            predictions = parts(self, prediction, n)
            if not isinstance(target, (tuple, list)) or len(target) != n:
                raise ShapeError(
                    f"MultiLoss: expected a tuple of {n} targets, found {type(target).__name__}"
                    "; give a target for each loss"
                )
            targets = tuple(target)
        terms = [
            weight * loss(p, t, sample_weight)
            for weight, loss, p, t in zip(
                self._weights, self.losses, predictions, targets, strict=True
            )
        ]
        total: Tensor = terms[0]
        for term in terms[1:]:
            total = total + term
        return total
