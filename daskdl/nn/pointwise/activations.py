"""Activations as layers, element by element and without parameters."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn.core.operation import _OfOperation
from daskdl.tensor import Tensor

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "HardSigmoid",
    "HardSwish",
    "LeakyReLU",
    "LogSigmoid",
    "Mish",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Tanh",
    "TanhShrink",
]


class ReLU(_OfOperation, operation=ops.relu, values="0. , 0.5, 2. "):
    """max(x, 0)."""


class ReLU6(_OfOperation, operation=ops.relu6, values="0. , 0.5, 2. "):
    """min(max(x, 0), 6)."""


class LeakyReLU(_OfOperation, operation=ops.leaky_relu, values="-0.2,  0.5,  2. "):
    """x where positive, ``slope * x`` elsewhere."""

    def __init__(self, slope: float = 0.2) -> None:
        self.slope = slope


class ELU(_OfOperation, operation=ops.elu, values="-0.632,  0.5  ,  2.   "):
    """x where positive, ``alpha * (exp(x) - 1)`` elsewhere (arXiv 1511.07289)."""

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha


class SELU(_OfOperation, values="-1.111,  0.525,  2.101"):
    """A scaled ELU that keeps mean 0 and variance 1 (G. Klambauer et al., arXiv 1706.02515)."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.elu(x, alpha=1.6732632423543772) * 1.0507009873554805


class GELU(_OfOperation, operation=ops.gelu, values="-0.159,  0.346,  1.954"):
    """x times the normal distribution function; ``approximate="tanh"`` for the paper's formula."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate


class SiLU(_OfOperation, operation=ops.silu, values="-0.269,  0.311,  1.762"):
    """x / (1 + exp(-x)), also called swish."""


class Mish(_OfOperation, values="-0.303,  0.375,  1.944"):
    """x * tanh(softplus(x)) (D. Misra, arXiv 1908.08681)."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        y: Tensor = ops.multiply(x, ops.tanh(ops.softplus(x)))
        return y


class Sigmoid(_OfOperation, operation=ops.sigmoid, values="0.269, 0.622, 0.881"):
    """1 / (1 + exp(-x))."""


class LogSigmoid(_OfOperation, values="-1.313, -0.474, -0.127"):
    """log(1 / (1 + exp(-x))), without overflow."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softplus(ops.multiply(x, -1.0)) * -1.0


class Tanh(_OfOperation, operation=ops.tanh, values="-0.762,  0.462,  0.964"):
    """Hyperbolic tangent."""


class TanhShrink(_OfOperation, values="-0.238,  0.038,  1.036"):
    """x - tanh(x)."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        y: Tensor = ops.subtract(x, ops.tanh(x))
        return y


class Softplus(_OfOperation, values="0.313, 0.974, 2.127"):
    """log(1 + exp(beta * x)) / beta."""

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if self.beta == 1:
            return ops.softplus(x)
        return ops.softplus(ops.multiply(x, self.beta)) * (1 / self.beta)


class Softsign(_OfOperation, operation=ops.softsign, values="-0.5  ,  0.333,  0.667"):
    """x / (1 + abs(x))."""


class HardSigmoid(_OfOperation, operation=ops.hard_sigmoid, values="0.333, 0.583, 0.833"):
    """x / 6 + 1 / 2, from 0 to 1."""


class HardSwish(_OfOperation, operation=ops.hard_swish, values="-0.333,  0.292,  1.667"):
    """x hard_sigmoid(x) (A. Howard et al., arXiv 1905.02244)."""
