"""The group normalisation layer."""

from __future__ import annotations

from typing import Any

from daskdl.errors import SettingsError
from daskdl.nn.arguments import check_last_axis
from daskdl.nn.initialise import filled
from daskdl.nn.module import Module
from daskdl.nn.parameter import Parameter
from daskdl.ops.groupnorm import group_norm
from daskdl.tensor import Tensor

__all__ = ["GroupNorm"]


class GroupNorm(Module):
    """Normalise each sample's channels in groups, over all of its pixels (arXiv 1803.08494).

    Parameters
    ----------
    groups, channels : int
        As many groups as channels make it instance normalisation.
    eps : float
        Is added to the variance.
    affine : bool
        Whether to scale and shift by parameters.

    Examples
    --------
    >>> nn.GroupNorm(2, 4)(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 6, 5, 4)
    """

    def __init__(self, groups: int, channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        if groups < 1 or channels % groups:
            raise SettingsError(
                f"GroupNorm.groups: expected a divisor of the {channels} channels, found {groups}"
                "; take as many groups as divide them evenly"
            )
        self.groups, self.channels, self.eps = groups, channels, eps
        self.weight = Parameter(filled(channels, 1)) if affine else None
        self.bias = Parameter(filled(channels, 0)) if affine else None

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to the same shape."""
        check_last_axis(self, x, None, self.channels)
        y: Tensor = group_norm(x, self.weight, self.bias, groups=self.groups, eps=self.eps)
        return y
