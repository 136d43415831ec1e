"""Loss of sequences whose labels have no times."""

from __future__ import annotations

from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["CTCLoss"]


class CTCLoss(Loss):
    """Connectionist temporal classification (A. Graves et al., ICML 2006).

    Parameters
    ----------
    blank : int
        The class that stands for no label.
    zero_infinity : bool
        Whether a sample with too few steps for its labels adds 0 and not infinity.

    Examples
    --------
    >>> logits = np.zeros((1, 4, 3), np.float32)  # blank, a, b
    >>> round(float(nn.CTCLoss()(logits, np.array([[1, 2]]))), 4)
    1.6864
    """

    def __init__(self, blank: int = 0, zero_infinity: bool = False) -> None:
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, logits: Any, labels: Any, sample_weight: Any = None, *, lengths: Any = None
    ) -> Tensor:
        """Compare logits (N, T, C) with labels (N, S), rows filled up with -1.

        ``lengths`` (N,) says how many of the T steps count, by default all.
        """
        return ops.ctc(
            logits,
            labels,
            lengths=lengths,
            blank=self.blank,
            zero_infinity=self.zero_infinity,
            sample_weight=sample_weight,
        )
