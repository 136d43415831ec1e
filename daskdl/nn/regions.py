"""Layers that pool regions of images to one size."""

from __future__ import annotations

from typing import Any

from daskdl.nn.arguments import Sizes, check_axes, sizes
from daskdl.nn.module import Module
from daskdl.ops.regions import roi_align, roi_pool
from daskdl.tensor import Tensor

__all__ = ["RoIAlign", "RoIPool"]


class RoIPool(Module):
    """Maxima of the boxes of regions (R. Girshick, Fast R-CNN, arXiv 1504.08083).

    Parameters
    ----------
    size : int or (rows, columns)
        Boxes of a region.
    scale : float
        From the regions' units to pixels.

    Examples
    --------
    >>> regions = np.array([[0, 1, 1, 6, 6]], np.float32)
    >>> nn.RoIPool((2, 2))(np.ones((1, 8, 8, 3), np.float32), regions).shape
    (1, 2, 2, 3)
    """

    def __init__(self, size: Sizes, scale: float = 1.0) -> None:
        self.size, self.scale = sizes("RoIPool.size", size, 2), scale

    def forward(self, x: Any, regions: Any = None) -> Tensor:
        """Map images (N, H, W, C) and regions (R, 5), or a pair of them, to (R, size..., C).

        A region is the number of its image, x and y of its first corner, x and y of its last.
        """
        x, regions = x if regions is None else (x, regions)
        check_axes(self, x, "N H W C")
        y: Tensor = roi_pool(x, regions, size=self.size, scale=self.scale)
        return y


class RoIAlign(Module):
    """Means of the boxes of regions, interpolated (K. He et al., Mask R-CNN, arXiv 1703.06870).

    Parameters
    ----------
    size, scale
        As :class:`RoIPool`'s.
    samples : int
        Points of a box along each axis; 0 for as many as it has pixels.
    aligned : bool
        Whether pixel centres lie at halves.

    Examples
    --------
    >>> regions = np.array([[0, 1, 1, 6, 6]], np.float32)
    >>> nn.RoIAlign((2, 2))(np.ones((1, 8, 8, 3), np.float32), regions).shape
    (1, 2, 2, 3)
    """

    def __init__(
        self, size: Sizes, scale: float = 1.0, samples: int = 0, aligned: bool = False
    ) -> None:
        self.size, self.scale = sizes("RoIAlign.size", size, 2), scale
        self.samples, self.aligned = samples, aligned

    def forward(self, x: Any, regions: Any = None) -> Tensor:
        """Map images (N, H, W, C) and regions (R, 5), or a pair of them, to (R, size..., C).

        A region is the number of its image, x and y of its first corner, x and y of its last.
        """
        x, regions = x if regions is None else (x, regions)
        check_axes(self, x, "N H W C")
        y: Tensor = roi_align(
            x, regions, size=self.size, scale=self.scale, samples=self.samples,
            aligned=self.aligned,
        )  # fmt: skip
        return y
