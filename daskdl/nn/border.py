"""Layers that put a border around sequences, images and volumes, or cut one off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.arguments import sides
from daskdl.nn.module import Module
from daskdl.tensor import Tensor

__all__ = ["Crop", "Pad"]


class Pad(Module):
    """Put elements around the axes between the first and the last, (N, ..., C) -> (N, ..., C).

    Parameters
    ----------
    widths : sequence of int
        One number for each of these axes, or two, before and behind.
    value : float
    mode : "constant", "reflect" or "edge"
    axes : int
        How many axes there are: 1 for sequences, 2 for images, 3 for volumes.

    Examples
    --------
    >>> nn.Pad((1, 2, 0, 1), mode="reflect")(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 9, 6, 4)
    """

    def __init__(
        self,
        widths: int | Sequence[int],
        value: float = 0.0,
        mode: str = "constant",
        axes: int = 2,
    ) -> None:
        if mode not in ("constant", "reflect", "edge"):
            raise SettingsError(f"Pad.mode: expected constant, reflect or edge, found {mode!r}")
        self.widths, self.value, self.mode = sides("Pad.widths", widths, axes), value, mode

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to a larger one."""
        pairs = _pairs(self, x, self.widths)
        y: Tensor = ops.pad(x, widths=pairs, value=self.value, mode=self.mode)
        return y


class Crop(Module):
    """Cut elements off the axes between the first and the last, (N, ..., C) -> (N, ..., C).

    Parameters
    ----------
    widths, axes
        As :class:`Pad`'s.

    Examples
    --------
    >>> nn.Crop((1, 2, 0, 1))(np.ones((2, 6, 5, 4), np.float32)).shape
    (2, 3, 4, 4)
    """

    def __init__(self, widths: int | Sequence[int], axes: int = 2) -> None:
        self.widths = sides("Crop.widths", widths, axes)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to a smaller one."""
        pairs = _pairs(self, x, self.widths)
        if any(n <= sum(cut) for n, cut in zip(x.shape[1:-1], pairs[1:-1], strict=True)):
            raise ShapeError(
                f"Crop: expected axes longer than what is cut off, {self.widths}, found "
                f"{tuple(x.shape)}"
                "; cut less off"
            )
        y: Tensor = ops.pad(x, widths=[(-before, -behind) for before, behind in pairs])
        return y


def _pairs(layer: Module, x: Any, widths: tuple[int, ...]) -> list[tuple[int, int]]:
    if len(x.shape) != len(widths) // 2 + 2:
        raise ShapeError(
            f"{type(layer).__name__}: expected an input of {len(widths) // 2 + 2} axes, "
            f"(N, ..., C), for widths {widths}, found {tuple(x.shape)}"
        )
    return [(0, 0), *zip(widths[::2], widths[1::2], strict=True), (0, 0)]
