"""Pooling over windows, whole pictures and regions of interest, and resampling."""

from __future__ import annotations

import math
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.arguments import Sizes, check_axes, sides, sizes
from daskdl.nn.core.module import Module
from daskdl.ops.pool.regions import roi_align, roi_pool
from daskdl.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Resize",
    "RoIAlign",
    "RoIPool",
    "Upsample",
]


_AXES = {1: "N T C", 2: "N H W C", 3: "N D H W C"}


class _Pool(Module, pure=True):
    """Pooling over windows; subclasses set axes and operation. Arguments as MaxPool2d's."""

    _axes: int
    _operation: str

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
    ) -> None:
        name, axes = type(self).__name__, self._axes
        self.kernel = sizes(f"{name}.kernel_size", kernel_size, axes)
        self.stride = self.kernel if stride is None else sizes(f"{name}.stride", stride, axes)
        self.pad = sides(f"{name}.padding", padding, axes)
        self.ceil_mode = ceil_mode

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to (N, windows ..., C)."""
        check_axes(self, x, _AXES[self._axes])
        one_axis = self._axes == 1
        return getattr(ops, self._operation)(
            x,
            kernel_size=self.kernel[0] if one_axis else self.kernel,
            stride=self.stride[0] if one_axis else self.stride,
            pad=self.pad,
            ceil_mode=self.ceil_mode,
            **self._settings(),
        )

    def _settings(self) -> dict[str, Any]:
        return {}


class _AvgPool(_Pool, pure=True):
    """Base of mean pooling; ``count_include_pad``: whether cells of the padding count."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode)
        self.count_include_pad = count_include_pad

    def _settings(self) -> dict[str, Any]:
        return {"count_include_pad": self.count_include_pad}


class MaxPool1d(_Pool):
    """The largest number of each window, (N, T, C) -> (N, steps, C).

    Arguments as :class:`MaxPool2d`'s, of one axis.
    """

    _axes, _operation = 1, "max_pool1d"


class MaxPool2d(_Pool):
    """The largest number of each window, (N, H, W, C) -> (N, rows, columns, C).

    Parameters
    ----------
    kernel_size : int or (rows, columns)
    stride : int or (down, across), optional
        By default the kernel's size.
    padding : int, (down, across) or (above, below, left, right)
        Cells around the image; maxima ignore them.
    ceil_mode : bool
        Whether the last window may reach beyond image and padding.
    """

    _axes, _operation = 2, "max_pool2d"


class MaxPool3d(_Pool):
    """The largest number of each window, (N, D, H, W, C) -> (N, depths, rows, columns, C).

    Arguments as :class:`MaxPool2d`'s, of three axes.
    """

    _axes, _operation = 3, "max_pool3d"


class AvgPool1d(_AvgPool):
    """The mean of each window, (N, T, C) -> (N, steps, C).

    Arguments as :class:`AvgPool2d`'s, of one axis.
    """

    _axes, _operation = 1, "avg_pool1d"


class AvgPool2d(_AvgPool):
    """The mean of each window, (N, H, W, C) -> (N, rows, columns, C).

    Parameters
    ----------
    kernel_size, stride, ceil_mode
        As :class:`MaxPool2d`'s.
    padding : int, (down, across) or (above, below, left, right)
        Zeros around the image.
    count_include_pad : bool
        Whether cells of the padding count as cells of a window.
    """

    _axes, _operation = 2, "avg_pool2d"


class AvgPool3d(_AvgPool):
    """The mean of each window, (N, D, H, W, C) -> (N, depths, rows, columns, C).

    Arguments as :class:`AvgPool2d`'s, of three axes.
    """

    _axes, _operation = 3, "avg_pool3d"


class GlobalAvgPool(Module, pure=True):
    """The mean of each channel of a sequence, image or volume, (N, ..., C) -> (N, C)."""

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to (N, C)."""
        return ops.global_avg_pool2d(_as_image(self, x))


class GlobalMaxPool(Module, pure=True):
    """The largest number of each channel, (N, ..., C) -> (N, C)."""

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to (N, C)."""
        return ops.global_max_pool2d(_as_image(self, x))


class AdaptiveAvgPool2d(Module, pure=True):
    """Means over ``size`` windows that divide an image, (N, H, W, C) -> (N, size..., C)."""

    def __init__(self, size: Sizes) -> None:
        self.size = sizes("AdaptiveAvgPool2d.size", size, 2)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to (N, size..., C)."""
        check_axes(self, x, "N H W C")
        return ops.adaptive_avg_pool2d(x, size=(self.size[0], self.size[1]))


class AdaptiveMaxPool2d(Module, pure=True):
    """Maxima over ``size`` windows that divide an image, (N, H, W, C) -> (N, size..., C)."""

    def __init__(self, size: Sizes) -> None:
        self.size = sizes("AdaptiveMaxPool2d.size", size, 2)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to (N, size..., C)."""
        check_axes(self, x, "N H W C")
        return ops.adaptive_max_pool2d(x, size=(self.size[0], self.size[1]))


def _as_image(layer: Module, x: Any) -> Tensor:
    if len(x.shape) < 3:
        raise ShapeError(
            f"{type(layer).__name__}: expected an input of shape (N, ..., C) with axes to pool "
            f"over, found {tuple(x.shape)}"
            "; leave out the layer for samples without axes"
        )
    if len(x.shape) == 4:
        return x
    return ops.reshape(x, shape=(x.shape[0], math.prod(x.shape[1:-1]), 1, x.shape[-1]))


class RoIPool(Module, pure=True):
    """Maxima of the boxes of regions (R. Girshick, Fast R-CNN, arXiv 1504.08083).

    Parameters
    ----------
    size : int or (rows, columns)
        Number of boxes of a region.
    scale : float
        Pixels in one unit of the regions' coordinates.
    """

    def __init__(self, size: Sizes, scale: float = 1.0) -> None:
        self.size, self.scale = sizes("RoIPool.size", size, 2), scale

    def forward(self, x: Any, regions: Any = None) -> Tensor:
        """Map images (N, H, W, C) and regions (R, 5), or a pair of them, to (R, size..., C).

        A region is the number of its image, x and y of its first corner, x and y of its last.
        """
        x, regions = x if regions is None else (x, regions)
        check_axes(self, x, "N H W C")
        return roi_pool(x, regions, size=self.size, scale=self.scale)


class RoIAlign(Module, pure=True):
    """Means of the boxes of regions, interpolated (K. He et al., Mask R-CNN, arXiv 1703.06870).

    Parameters
    ----------
    size, scale
        As :class:`RoIPool`'s.
    samples : int
        Points of a box along each axis; 0 for one in each pixel.
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
        return roi_align(
            x, regions, size=self.size, scale=self.scale, samples=self.samples,
            aligned=self.aligned,
        )  # fmt: skip


class Upsample(Module, pure=True):
    """Enlarges sequences, images and volumes by whole numbers, (N, ..., C).

    Parameters
    ----------
    scale : int or sequence of int
        One number for all axes between the first and the last, or one for each.
    mode : "nearest" or "bilinear"
        Repeated elements, or (images only) linear interpolation between pixels' centres.
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
        Whether to align the centres of the corners' pixels; otherwise the images' edges.
    """

    def __init__(self, size: Sizes, align_corners: bool = False) -> None:
        self.size, self.align_corners = sizes("Resize.size", size, 2), align_corners

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to (N, size..., C)."""
        check_axes(self, x, "N H W C")
        size = self.size[0], self.size[1]
        return ops.resize_bilinear(x, size=size, align_corners=self.align_corners)
