"""Activation layers: of each element, with parameters, and over channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.core.arguments import check_last_axis
from daskdl.nn.core.module import Module
from daskdl.nn.core.operation import _OfOperation
from daskdl.nn.core.parameter import Parameter, filled
from daskdl.nn.core.state import generator_of_draw
from daskdl.nn.linear import Linear
from daskdl.tensor import Tensor

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "BinaryThreshold",
    "HardShrink",
    "HardSigmoid",
    "HardSwish",
    "HardTanh",
    "Highway",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Maxout",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SReLU",
    "SiLU",
    "Sigmoid",
    "SoftShrink",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softsign",
    "Tanh",
    "TanhShrink",
    "Threshold",
]


class ReLU(_OfOperation, operation=ops.relu, values="0. , 0.5, 2. "):
    """max(x, 0)."""


class ReLU6(_OfOperation, operation=ops.relu6, values="0. , 0.5, 2. "):
    """min(max(x, 0), 6)."""


class LeakyReLU(_OfOperation, operation=ops.leaky_relu, values="-0.2,  0.5,  2. "):
    """x where positive, ``slope * x`` elsewhere."""

    slope: float = 0.2


class ELU(_OfOperation, operation=ops.elu, values="-0.632,  0.5  ,  2.   "):
    """x where positive, ``alpha * (exp(x) - 1)`` elsewhere (arXiv 1511.07289)."""

    alpha: float = 1.0


class SELU(_OfOperation, values="-1.111,  0.525,  2.101"):
    """A scaled ELU that keeps mean 0 and variance 1 (G. Klambauer et al., arXiv 1706.02515)."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.elu(x, alpha=1.6732632423543772) * 1.0507009873554805


class GELU(_OfOperation, operation=ops.gelu, values="-0.159,  0.346,  1.954"):
    """x times the normal distribution function; ``approximate="tanh"`` for the paper's formula."""

    approximate: str = "none"


class SiLU(_OfOperation, operation=ops.silu, values="-0.269,  0.311,  1.762"):
    """x / (1 + exp(-x)), also called swish."""


class Mish(_OfOperation, values="-0.303,  0.375,  1.944"):
    """x * tanh(softplus(x)) (D. Misra, arXiv 1908.08681)."""

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.multiply(x, ops.tanh(ops.softplus(x)))


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
        return ops.subtract(x, ops.tanh(x))


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
    """x / 6 + 1 / 2, limited to 0 and 1."""


class HardSwish(_OfOperation, operation=ops.hard_swish, values="-0.333,  0.292,  1.667"):
    """x hard_sigmoid(x) (A. Howard et al., arXiv 1905.02244)."""


class PReLU(Module, pure=True):
    """x where positive, a learned slope times x elsewhere (K. He et al., arXiv 1502.01852).

    Parameters
    ----------
    channels : int
        Number of slopes; all channels share a single one.
    slope : float
        Initial slope.
    """

    def __init__(self, channels: int = 1, slope: float = 0.25) -> None:
        self.channels = channels
        self.slope = Parameter(filled(channels, slope))

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        if self.channels != 1:
            check_last_axis(self, x, None, self.channels)
        return ops.prelu(x, self.slope)


class RReLU(Module, pure=True):
    """x where positive, x times a random slope elsewhere; inference uses the mean slope.

    B. Xu et al., arXiv 1505.00853.

    Parameters
    ----------
    low, high : float
        Bounds of the slopes.
    """

    def __init__(self, low: float = 1 / 8, high: float = 1 / 3) -> None:
        if not low <= high:
            raise SettingsError(
                f"RReLU: expected low <= high, found {low} and {high}; change the two about"
            )
        self.low, self.high = low, high

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        if not self.training:
            return ops.leaky_relu(x, slope=(self.low + self.high) / 2)
        slopes = generator_of_draw().uniform(self.low, self.high, x.shape).astype(x.dtype)
        return ops.multiply(x, np.where(np.asarray(x) >= 0, x.dtype.type(1), slopes))


class SReLU(Module):
    """Three straight pieces with learned joints and slopes (X. Jin et al., arXiv 1512.07030).

    ``right + slope_right * (x - right)`` above ``right``, ``left + slope_left * (x - left)`` below
    ``left``, x in between. Joints and slopes (C,) start at 0 and 1, and at 0.2 and 1.
    """

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.left = Parameter(filled(channels, 0))
        self.slope_left = Parameter(filled(channels, 0.2))
        self.right = Parameter(filled(channels, 1))
        self.slope_right = Parameter(filled(channels, 1))

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        check_last_axis(self, x, None, self.channels)
        values = np.asarray(x)
        above = self.right + self.slope_right * ops.subtract(x, self.right)
        below = self.left + self.slope_left * ops.subtract(x, self.left)
        inner = ops.where(values > self.left.data, x, below)
        return ops.where(values >= self.right.data, above, inner)


class Maxout(Module, pure=True):
    """The largest of ``pieces`` affine maps, (..., in) -> (..., out).

    I. Goodfellow et al., arXiv 1302.4389.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        pieces: int,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        self.pieces, self.in_features, self.out_features = pieces, in_features, out_features
        self.linear = Linear(in_features, pieces * out_features, bias, seed)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        check_last_axis(self, x, None, self.in_features)
        pieces = ops.reshape(self.linear(x), shape=(*x.shape[:-1], self.pieces, self.out_features))
        return ops.amax(pieces, axis=-2)


class Highway(Module, pure=True):
    """gate * activation(linear(x)) + (1 - gate) * x, (..., C) -> (..., C).

    R. Srivastava et al., arXiv 1505.00387. The gates start nearly closed, at a bias of -2.

    Parameters
    ----------
    features : int
    activation : Module, optional
        By default Tanh.
    bias : bool
    seed : int, optional
    """

    def __init__(
        self,
        features: int,
        activation: Module | None = None,
        bias: bool = True,
        seed: int | None = None,
    ) -> None:
        self.features = features
        self.linear = Linear(features, features, bias, seed)
        self.gate = Linear(features, features, bias, None if seed is None else seed + 1)
        if self.gate.bias is not None:
            self.gate.bias.data[:] = -2
        self.activation = Tanh() if activation is None else activation

    def forward(self, x: Any) -> Tensor:
        """Map x (..., C) to the same shape."""
        check_last_axis(self, x, None, self.features)
        gate = ops.sigmoid(self.gate(x))
        return gate * ops.subtract(self.activation(self.linear(x)), x) + x


class Softmax(_OfOperation, operation=ops.softmax, values="0.039, 0.175, 0.786"):
    """exp(x) / sum(exp(x)) along ``axis``."""

    axis: int = -1


class LogSoftmax(_OfOperation, operation=ops.log_softmax, values="-3.241, -1.741, -0.241"):
    """x - log(sum(exp(x))) along ``axis``."""

    axis: int = -1


class Softmin(_OfOperation, values="0.786, 0.175, 0.039"):
    """Softmax of -x."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        return ops.softmax(ops.multiply(x, -1.0), axis=self.axis)


class Threshold(_OfOperation, operation=ops.threshold, values="0. , 0.5, 2. "):
    """x where above ``threshold``, ``value`` elsewhere."""

    threshold: float = 1e-6
    value: float = 0.0


class BinaryThreshold(_OfOperation, pure=False, values="0., 1., 1."):
    """1 where x is above ``threshold``, 0 elsewhere; no gradient passes."""

    def __init__(self, threshold: float = 1e-6) -> None:
        self.threshold = threshold

    def forward(self, x: Any) -> Tensor:
        """Map any shape to the same shape."""
        values = np.asarray(x)
        return Tensor((values > self.threshold).astype(values.dtype))


class HardTanh(_OfOperation, operation=ops.hard_tanh, values="-1. ,  0.5,  1. "):
    """x, limited to ``low`` and ``high``."""

    low: float = -1.0
    high: float = 1.0


class HardShrink(_OfOperation, operation=ops.hard_shrink, values="-1.,  0.,  2."):
    """x where further than ``edge`` from 0, 0 elsewhere."""

    edge: float = 0.5


class SoftShrink(_OfOperation, operation=ops.soft_shrink, values="-0.5,  0. ,  1.5"):
    """x moved by ``edge`` towards 0, but not beyond 0."""

    edge: float = 0.5
