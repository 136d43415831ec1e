"""Activations as layers, element by element and without parameters."""

from __future__ import annotations

from typing import Any

from daskdl import ops
from daskdl.nn.core.module import Module
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


class ReLU(Module, pure=True):
    """max(x, 0).

    Examples
    --------
    >>> nn.ReLU()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0. , 0.5, 2. ]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.relu(x)


class ReLU6(Module, pure=True):
    """min(max(x, 0), 6).

    Examples
    --------
    >>> nn.ReLU6()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0. , 0.5, 2. ]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.relu6(x)


class LeakyReLU(Module, pure=True):
    """x where positive, ``slope * x`` elsewhere.

    Examples
    --------
    >>> nn.LeakyReLU()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.2,  0.5,  2. ]], dtype=float32)
    """

    def __init__(self, slope: float = 0.2) -> None:
        self.slope = slope

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.leaky_relu(x, slope=self.slope)


class ELU(Module, pure=True):
    """x where positive, ``alpha * (exp(x) - 1)`` elsewhere (arXiv 1511.07289).

    Examples
    --------
    >>> nn.ELU()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.632,  0.5  ,  2.   ]], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.elu(x, alpha=self.alpha)


class SELU(Module, pure=True):
    """A scaled ELU that keeps mean 0 and variance 1 (G. Klambauer et al., arXiv 1706.02515).

    Examples
    --------
    >>> nn.SELU()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-1.111,  0.525,  2.101]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.elu(x, alpha=1.6732632423543772) * 1.0507009873554805


class GELU(Module, pure=True):
    """x times the normal distribution function; ``approximate="tanh"`` for the paper's formula.

    Examples
    --------
    >>> nn.GELU()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.159,  0.346,  1.954]], dtype=float32)
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.gelu(x, approximate=self.approximate)


class SiLU(Module, pure=True):
    """x / (1 + exp(-x)), also called swish.

    Examples
    --------
    >>> nn.SiLU()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.269,  0.311,  1.762]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.silu(x)


class Mish(Module, pure=True):
    """x * tanh(softplus(x)) (D. Misra, arXiv 1908.08681).

    Examples
    --------
    >>> nn.Mish()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.303,  0.375,  1.944]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        y: Tensor = ops.multiply(x, ops.tanh(ops.softplus(x)))
        return y


class Sigmoid(Module, pure=True):
    """1 / (1 + exp(-x)).

    Examples
    --------
    >>> nn.Sigmoid()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0.269, 0.622, 0.881]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.sigmoid(x)


class LogSigmoid(Module, pure=True):
    """log(1 / (1 + exp(-x))), without overflow.

    Examples
    --------
    >>> nn.LogSigmoid()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-1.313, -0.474, -0.127]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softplus(ops.multiply(x, -1.0)) * -1.0


class Tanh(Module, pure=True):
    """Hyperbolic tangent.

    Examples
    --------
    >>> nn.Tanh()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.762,  0.462,  0.964]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.tanh(x)


class TanhShrink(Module, pure=True):
    """x - tanh(x).

    Examples
    --------
    >>> nn.TanhShrink()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.238,  0.038,  1.036]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        y: Tensor = ops.subtract(x, ops.tanh(x))
        return y


class Softplus(Module, pure=True):
    """log(1 + exp(beta * x)) / beta.

    Examples
    --------
    >>> nn.Softplus()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0.313, 0.974, 2.127]], dtype=float32)
    """

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = beta

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if self.beta == 1:
            return ops.softplus(x)
        return ops.softplus(ops.multiply(x, self.beta)) * (1 / self.beta)


class Softsign(Module, pure=True):
    """x / (1 + abs(x)).

    Examples
    --------
    >>> nn.Softsign()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.5  ,  0.333,  0.667]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softsign(x)


class HardSigmoid(Module, pure=True):
    """x / 6 + 1 / 2, from 0 to 1.

    Examples
    --------
    >>> nn.HardSigmoid()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[0.333, 0.583, 0.833]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.hard_sigmoid(x)


class HardSwish(Module, pure=True):
    """x hard_sigmoid(x) (A. Howard et al., arXiv 1905.02244).

    Examples
    --------
    >>> nn.HardSwish()(np.array([[-1.0, 0.5, 2.0]], np.float32)).data.round(3)
    array([[-0.333,  0.292,  1.667]], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.hard_swish(x)
