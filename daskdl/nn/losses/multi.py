"""MultiLoss: the weighted sum of several losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.losses.loss import Loss, parts
from daskdl.tensor import Tensor

__all__ = ["MultiLoss"]


class MultiLoss(Loss):
    """The weighted sum of several losses, of one prediction or of one each.

    Parameters
    ----------
    losses : sequence of Loss, or mapping of names to them
        With names prediction and target are mappings too, and each loss compares those of its name.
    weights : a number for each, in the same form, optional
        All 1 by default; in a mapping also of those that are left out.
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
        losses: Sequence[Loss] | Mapping[str, Loss],
        weights: Sequence[float] | Mapping[str, float] | None = None,
        paired: bool = False,
    ) -> None:
        self._names: tuple[str, ...] | None = None
        if isinstance(losses, Mapping):
            self._names = tuple(losses)
            weights = _by_name(self._names, weights)
            losses = list(losses.values())
        weights = [1.0] * len(losses) if weights is None else list(weights)  # type: ignore[arg-type]
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
        if self._names is not None:
            predictions = tuple(_called(self._names, "predictions", prediction))
            targets = tuple(_called(self._names, "targets", target))
        elif self.paired:
            predictions = parts(self, prediction, n)
            if not isinstance(target, (tuple, list)) or len(target) != n:
                raise ShapeError(
                    f"MultiLoss: expected a tuple of {n} targets, found {type(target).__name__}"
                    "; give a target for each loss"
                )
            targets = tuple(target)
        try:
            terms = [
                weight * (loss(p, t) if sample_weight is None else loss(p, t, sample_weight))
                for weight, loss, p, t in zip(
                    self._weights, self.losses, predictions, targets, strict=True
                )
            ]
        except (TypeError, ValueError) as error:
            one_each = isinstance(prediction, tuple) and isinstance(target, tuple)
            if not one_each or self.paired or self._names is not None:
                raise
            raise ShapeError(
                "MultiLoss: expected one prediction and one target for all losses, found "
                f"{len(prediction)} and {len(target)}; with paired=True each loss has its own"
            ) from error
        total: Tensor = terms[0]
        for term in terms[1:]:
            total = total + term
        return total


def _by_name(names: Sequence[str], weights: Any) -> list[float]:
    """Return a weight for each name."""
    if weights is not None and not (isinstance(weights, Mapping) and weights.keys() <= set(names)):
        raise SettingsError(
            f"MultiLoss: expected weights by the names {list(names)}, found {weights!r}"
            "; give a dict with a number for each"
        )
    return [float((weights or {}).get(name, 1.0)) for name in names]


def _called(names: Sequence[str], what: str, held: Any) -> list[Any]:
    """Return the value under each name."""
    if len(names) == 1 and not isinstance(held, (Mapping, tuple, list)):
        return [held]  # one alone, which bears no name
    if not isinstance(held, Mapping) or not set(names) <= held.keys():
        described = sorted(held) if isinstance(held, Mapping) else type(held).__name__
        raise ShapeError(
            f"MultiLoss: expected {what} called {list(names)}, found {described}; return a dict "
            "from forward, and give y={name: array} to the SampleSet"
        )
    return [held[name] for name in names]
