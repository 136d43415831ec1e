"""Elementary functions as layers, and learned numbers that scale or shift."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.arguments import Sizes, sizes
from daskdl.nn.core.module import Module
from daskdl.nn.core.operation import _OfOperation
from daskdl.nn.core.parameter import Parameter, filled
from daskdl.tensor import Tensor, op

__all__ = [
    "Abs",
    "Affine",
    "Clip",
    "Exp",
    "GradientReversal",
    "Log",
    "Power",
    "Scale",
    "Sqrt",
    "Square",
]


class Abs(_OfOperation, operation=ops.abs, values="1. , 0.5, 2. "):
    """Magnitude."""


class Exp(_OfOperation, operation=ops.exp, values="0.368, 1.649, 7.389"):
    """E to the power of x."""


class Log(_OfOperation, operation=ops.log, values="-1.386,  0.   ,  1.386", at="0.25, 1.0, 4.0"):
    """Natural logarithm."""


class Sqrt(_OfOperation, operation=ops.sqrt, values="0.5, 1. , 2. ", at="0.25, 1.0, 4.0"):
    """Square root."""


class Square(_OfOperation, operation=ops.square, values="1.  , 0.25, 4.  "):
    """x times x."""


class Power(Module, pure=True):
    """(shift + scale * x) to the power of a number.

    Examples
    --------
    >>> nn.Power(2.0)(np.array([[1.0, 3.0]], np.float32)).data
    array([[1., 9.]], dtype=float32)
    """

    def __init__(self, exponent: float, scale: float = 1.0, shift: float = 0.0) -> None:
        self.exponent, self.scale, self.shift = exponent, scale, shift

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        base = ops.add(ops.multiply(x, self.scale), self.shift)
        return ops.power(base, exponent=self.exponent)


class Clip(_OfOperation, operation=ops.clip):
    """x, limited to ``low`` and ``high``."""

    def __init__(self, low: float, high: float) -> None:
        if not low <= high:
            raise SettingsError(
                f"Clip: expected low <= high, found {low} and {high}; change the two about"
            )
        self.low, self.high = low, high


class Affine(Module, pure=True):
    """scale * x + shift with two fixed numbers."""

    def __init__(self, scale: float = 1.0, shift: float = 0.0) -> None:
        self.scale, self.shift = scale, shift

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.add(ops.multiply(x, self.scale), self.shift)


class Scale(Module, pure=True):
    """weight * x + bias, both learned; their shape broadcasts to a sample's.

    Parameters
    ----------
    shape : int or sequence of int
        ``channels`` gives a number to each channel; (1,) is one number for all.
    weight, bias : bool
        Whether the layer has this parameter.
    """

    def __init__(self, shape: Sizes, weight: bool = True, bias: bool = True) -> None:
        lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        self.shape = sizes("Scale.shape", lengths, len(lengths))
        if not (weight or bias):
            raise SettingsError(
                "Scale: expected a weight or a bias, found neither; leave one of them True"
            )
        self.weight = Parameter(filled(self.shape, 1)) if weight else None
        self.bias = Parameter(filled(self.shape, 0)) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        last = tuple(x.shape)[len(x.shape) - len(self.shape) :]
        if any(length not in (1, n) for length, n in zip(self.shape, last, strict=False)) or len(
            last
        ) != len(self.shape):
            raise ShapeError(
                f"Scale: expected an input whose last axes take {self.shape}, found "
                f"{tuple(x.shape)}"
            )
        if self.weight is not None:
            x = ops.multiply(x, self.weight)
        return x if self.bias is None else ops.add(x, self.bias)


@op
def _reversed(x: Any, *, scale: float) -> Any:
    return x, lambda dy: (dy * x.dtype.type(-scale),)


class GradientReversal(_OfOperation, operation=_reversed, values="-1. ,  0.5,  2. "):
    """Returns its input; multiplies the gradient with ``-scale`` (Y. Ganin et al., 1505.07818)."""

    scale: float = 1.0
