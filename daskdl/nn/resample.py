"""Layers that bring sequences, images and volumes to another size."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.arguments import Sizes, check_axes, sizes
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["Resize", "Upsample"]


class Upsample(Module):
    """Make sequences, images and volumes a whole number of times as large, (N, ..., C).

    Parameters
    ----------
    scale : int or sequence of int
        For all axes between the first and the last, or for each.
    mode : "nearest" or "bilinear"
        Each element again and again, or (images only) lines between pixels' centres.

    Examples
    --------
    >>> nn.Upsample((2, 3), mode="bilinear")(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 12, 15, 4)
    """

    def __init__(self, scale: Sizes, mode: str = "nearest") -> None:
        if mode not in ("nearest", "bilinear"):
            raise SettingsError(f"Upsample.mode: expected nearest or bilinear, found {mode!r}")
        given = scale if isinstance(scale, int) else tuple(scale)
        self.scale = sizes("Upsample.scale", given, 1 if isinstance(given, int) else len(given))
        self.mode, self.same = mode, isinstance(given, int)

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


class Resize(Module):
    """Interpolate images linearly at another size, (N, H, W, C) -> (N, size..., C).

    Parameters
    ----------
    size : int or (rows, columns)
    align_corners : bool
        Whether the corners' pixels lie on each other; otherwise the images' edges do.

    Examples
    --------
    >>> nn.Resize((3, 9), align_corners=True)(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 3, 9, 4)
    """

    def __init__(self, size: Sizes, align_corners: bool = False) -> None:
        self.size, self.align_corners = sizes("Resize.size", size, 2), align_corners

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, C) to (N, size..., C)."""
        check_axes(self, x, "N H W C")
        size = self.size[0], self.size[1]
        return ops.resize_bilinear(x, size=size, align_corners=self.align_corners)
