"""Regions of interest, and resampling: pooling to a size that is asked for."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.arguments import Sizes, check_axes, sizes
from daskdl.nn.core.module import Module
from daskdl.ops.pool.regions import roi_align, roi_pool
from daskdl.tensor import Tensor

__all__ = [
    "Resize",
    "RoIAlign",
    "RoIPool",
    "Upsample",
]


class RoIPool(Module, pure=True):
    """Maxima of the boxes of regions (R. Girshick, Fast R-CNN, arXiv 1504.08083).

    Parameters
    ----------
    size : int or (rows, columns)
        Boxes of a region.
    scale : float
        From the regions' units to pixels.
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


class RoIAlign(Module, pure=True):
    """Means of the boxes of regions, interpolated (K. He et al., Mask R-CNN, arXiv 1703.06870).

    Parameters
    ----------
    size, scale
        As :class:`RoIPool`'s.
    samples : int
        Points of a box along each axis; 0 for as many as it has pixels.
    aligned : bool
        Whether pixel centres lie at halves.
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


class Upsample(Module, pure=True):
    """Make sequences, images and volumes a whole number of times as large, (N, ..., C).

    Parameters
    ----------
    scale : int or sequence of int
        For all axes between the first and the last, or for each.
    mode : "nearest" or "bilinear"
        Each element again and again, or (images only) lines between pixels' centres.
    """

    def __init__(self, scale: Sizes, mode: str = "nearest") -> None:
        if mode not in ("nearest", "bilinear"):
            raise SettingsError(f"Upsample.mode: expected nearest or bilinear, found {mode!r}")
        factors = scale if isinstance(scale, int) else tuple(scale)
        self.scale = sizes(
            "Upsample.scale", factors, 1 if isinstance(factors, int) else len(factors)
        )
        self.mode, self.same = mode, isinstance(factors, int)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to a larger one."""
        axes = len(x.shape) - 2
        scale = self.scale * axes if self.same else self.scale
        if axes < 1 or len(scale) != axes or (self.mode == "bilinear" and axes != 2):
            expected = "(N, H, W, C)" if self.mode == "bilinear" else "(N, ..., C)"
            raise ShapeError(
                f"Upsample: expected an input {expected} for the scale {self.scale}, found "
                f"{tuple(x.shape)}"
                "; give one factor for each axis between the first and the last"
            )
        if self.mode == "nearest":
            return ops.upsample_nearest(x, scale=scale)
        size = x.shape[1] * scale[0], x.shape[2] * scale[1]
        return ops.resize_bilinear(x, size=size)


class Resize(Module, pure=True):
    """Interpolate images linearly at another size, (N, H, W, C) -> (N, size..., C).

    Parameters
    ----------
    size : int or (rows, columns)
    align_corners : bool
        Whether the corners' pixels lie on each other; otherwise the images' edges do.
    """

    def __init__(self, size: Sizes, align_corners: bool = False) -> None:
        self.size, self.align_corners = sizes("Resize.size", size, 2), align_corners

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to (N, size..., C)."""
        check_axes(self, x, "N H W C")
        size = self.size[0], self.size[1]
        return ops.resize_bilinear(x, size=size, align_corners=self.align_corners)
