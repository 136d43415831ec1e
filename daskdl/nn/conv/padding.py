"""Padding and cropping, and the border that a convolution adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.arguments import sides
from daskdl.nn.core.module import Module
from daskdl.tensor import Tensor

__all__ = [
    "Crop",
    "Pad",
]


class Padding:
    """Zeros before and after each axis of a layer's input; errors have the layer's name.

    Parameters
    ----------
    padding : numbers, "same" or "causal"
        "same": an axis of length n has ``ceil(n / stride)`` results, with the odd zero at the end.
        "causal": all zeros come first, so that no result sees a later step.
    kernel, stride, dilation : sequences of int
        One number for each axis.
    """

    def __init__(
        self,
        layer: str,
        padding: Any,
        kernel: Sequence[int],
        stride: Sequence[int],
        dilation: Sequence[int],
    ) -> None:
        self.layer = layer
        self.reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
        self.stride = tuple(stride)
        self.mode = padding if padding in ("same", "causal") else "fixed"
        if padding == "causal" and len(self.reach) > 1:
            raise SettingsError(
                f"{layer}: padding: expected causal only along one axis of time"
                "; use 'same' or numbers for images"
            )
        self.fixed = (
            sides(f"{layer}.padding", padding, len(self.reach)) if self.mode == "fixed" else ()
        )

    def of(self, lengths: Sequence[int]) -> tuple[int, ...]:
        """Return the zeros before and after each axis, for an input of these lengths.

        Raises ShapeError if the kernel does not fit into the padded input.
        """
        pads: tuple[int, ...]
        if self.mode == "causal":
            pads = (self.reach[0] - 1, 0)
        elif self.mode == "same":
            more = [
                max((-(-n // step) - 1) * step + reach - n, 0)
                for n, step, reach in zip(lengths, self.stride, self.reach, strict=True)
            ]
            pads = tuple(part for n in more for part in (n // 2, n - n // 2))
        else:
            pads = self.fixed
        widths = tuple(
            n + before + behind
            for n, before, behind in zip(lengths, pads[::2], pads[1::2], strict=True)
        )
        if any(n < reach for n, reach in zip(widths, self.reach, strict=True)):
            image = {1: "a sequence", 2: "an image", 3: "a volume"}[len(widths)]
            raise ShapeError(
                f"{self.layer}: expected {image} of at least {self.reach} after padding, found "
                f"{widths}"
                "; pad more, or take a smaller kernel"
            )
        return pads

    def share(self, in_channels: int, out_channels: int, groups: int) -> int:
        """Return the input channels of a group; groups must divide both kinds of channels."""
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError(
                f"{self.layer}.groups: expected a divisor of the {in_channels} channels in and "
                f"the {out_channels} out, found {groups}"
                "; take as many groups as divide both"
            )
        return in_channels // groups


class Pad(Module, pure=True):
    """Add elements around the axes between the first and the last, (N, ..., C) -> (N, ..., C).

    Parameters
    ----------
    widths : sequence of int
        One number for each of these axes, or two: before and after.
    value : float
    mode : "constant", "reflect" or "edge"
    axes : int
        Number of these axes: 1 for sequences, 2 for images, 3 for volumes.
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
        return ops.pad(x, widths=pairs, value=self.value, mode=self.mode)


class Crop(Module, pure=True):
    """Cut elements off the axes between the first and the last, (N, ..., C) -> (N, ..., C).

    Parameters
    ----------
    widths, axes
        As :class:`Pad`'s.
    """

    def __init__(self, widths: int | Sequence[int], axes: int = 2) -> None:
        self.widths = sides("Crop.widths", widths, axes)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, ..., C) to a smaller one."""
        pairs = _pairs(self, x, self.widths)
        if any(n <= sum(cut) for n, cut in zip(x.shape[1:-1], pairs[1:-1], strict=True)):
            raise ShapeError(
                f"Crop: expected axes longer than the cut, {self.widths}, found "
                f"{tuple(x.shape)}"
                "; cut less off"
            )
        return ops.pad(x, widths=[(-before, -behind) for before, behind in pairs])


def _pairs(layer: Module, x: Any, widths: tuple[int, ...]) -> list[tuple[int, int]]:
    if len(x.shape) != len(widths) // 2 + 2:
        raise ShapeError(
            f"{type(layer).__name__}: expected an input of {len(widths) // 2 + 2} axes, "
            f"(N, ..., C), for widths {widths}, found {tuple(x.shape)}"
        )
    return [(0, 0), *zip(widths[::2], widths[1::2], strict=True), (0, 0)]
