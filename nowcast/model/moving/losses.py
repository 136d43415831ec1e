"""Losses of probabilities of exceedance."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.nn.losses.loss import Loss
from daskdl.ops.pointwise.activations import sigmoid
from daskdl.tensor import Tensor
from nowcast.lagrangian.exceedance import THRESHOLDS

#: Weights of the thresholds of "balanced", proportional to rain rates as in Shi et al. (2017).
BALANCED = tuple(max(1.0, threshold) for threshold in THRESHOLDS)


class ExceedanceLoss(Loss):
    """Loss of logits of exceedance against the number of thresholds that were reached.

    - "crps": the mean of the Brier scores of all thresholds, a CRPS in the logarithm of the rain
      rate that is sampled at the thresholds;
    - "balanced": the same with more weight on heavier rain;
    - "sharp": 1 - CSI with probabilities instead of yes and no (M. Rahman and Y. Wang, "Optimizing
      intersection-over-union in deep neural networks", ISVC 2016); it favours probabilities near
      0 and 1.
    """

    def __init__(self, kind: str = "crps") -> None:
        self.kind = kind
        weights = np.asarray(BALANCED if kind == "balanced" else [1.0] * len(THRESHOLDS))
        self._weights = (weights / weights.sum()).astype(np.float32)

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare logits (N, H, W, threshold) with counts (N, H, W), -1 where missing."""
        target = np.asarray(target)
        known = (target >= 0)[..., np.newaxis]
        reached = target[..., np.newaxis] > np.arange(len(THRESHOLDS))
        chance = sigmoid(prediction)
        if self.kind == "sharp":
            return self._sharp(chance, reached.astype(np.float32), known.astype(np.float32))
        count = np.maximum(known.sum((1, 2, 3), keepdims=True), known[0].size / 10)
        weight = known * self._weights * np.float32(known[0].size) / count
        wrong = chance - reached.astype(np.float32)
        total: Tensor = (wrong * wrong * weight.astype(np.float32)).sum(axis=-1).mean()
        return total

    def _sharp(self, chance: Tensor, reached: Any, known: Any) -> Tensor:
        hits = (chance * (reached * known)).sum(axis=(1, 2))
        union = (chance * known).sum(axis=(1, 2)) + (reached * known).sum((1, 2)) - hits
        # One extra pixel of rain in the denominator keeps the loss of dry samples small.
        csi = (hits + np.float32(1)) / (union + np.float32(1))
        total: Tensor = ((csi * np.float32(-1) + np.float32(1)) * self._weights).sum(axis=-1).mean()
        return total
