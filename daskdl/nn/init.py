"""Initial weights by the standard recipes, filled into parameters in place.

Weights are (out, ..., in), as in all layers here: the fan-in is the product of all axes except the
first, the fan-out of all except the last. Each function returns the parameter. ``seed`` is an
integer, or None for different numbers in each run.

Examples
--------
>>> from daskdl import nn
>>> layer = nn.Conv2d(3, 8, 3)
>>> nn.init.kaiming_normal(layer.weight, nonlinearity="relu", seed=0)
Parameter(f32[8, 3, 3, 3])
"""

from __future__ import annotations

import math

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.parameter import Parameter, generator

_GAINS = {
    "linear": 1.0,
    "conv": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 0.75,
}


def gain(nonlinearity: str, slope: float = 0.01) -> float:
    """Return the scale of weights before an activation, as PyTorch's ``calculate_gain``.

    Parameters
    ----------
    nonlinearity : "linear", "conv", "sigmoid", "tanh", "relu", "leaky_relu" or "selu"
    slope : float
        Slope of the leaky ReLU.

    Examples
    --------
    >>> round(gain("relu"), 4)
    1.4142
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise SettingsError(
            f"gain: expected one of {', '.join([*_GAINS, 'leaky_relu'])}, found {nonlinearity!r}"
            "; pass the number itself for others"
        )
    return _GAINS[nonlinearity]


def fans(parameter: Parameter) -> tuple[int, int]:
    """Return (fan-in, fan-out) of a weight (out, ..., in).

    Examples
    --------
    >>> fans(nn.Conv2d(4, 8, 3).weight)
    (36, 72)
    """
    shape = parameter.shape
    if len(shape) < 2:
        raise ShapeError(
            f"init: expected a weight of at least 2 axes, found shape {shape}"
            "; use zeros, ones or constant for vectors"
        )
    return math.prod(shape[1:]), math.prod(shape[:-1])


def zeros(parameter: Parameter) -> Parameter:
    """Fill with 0."""
    return constant(parameter, 0.0)


def ones(parameter: Parameter) -> Parameter:
    """Fill with 1."""
    return constant(parameter, 1.0)


def constant(parameter: Parameter, value: float) -> Parameter:
    """Fill with a number.

    Examples
    --------
    >>> parameter = nn.Linear(3, 2, bias=False).weight
    >>> constant(parameter, 0.5).data
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]], dtype=float32)
    """
    parameter.data[...] = value
    return parameter


def uniform(
    parameter: Parameter, low: float = 0.0, high: float = 1.0, seed: int | None = None
) -> Parameter:
    """Draw from U(low, high)."""
    parameter.data[...] = generator(seed).uniform(low, high, parameter.shape)
    return parameter


def normal(
    parameter: Parameter, mean: float = 0.0, deviation: float = 1.0, seed: int | None = None
) -> Parameter:
    """Draw from N(mean, deviation**2)."""
    parameter.data[...] = generator(seed).normal(mean, deviation, parameter.shape)
    return parameter


def truncated_normal(
    parameter: Parameter,
    mean: float = 0.0,
    deviation: float = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    seed: int | None = None,
) -> Parameter:
    """Draw from N(mean, deviation**2), repeatedly until all are from ``low`` to ``high``.

    As in PyTorch, the bounds are numbers, not multiples of the deviation.
    """
    if not low < high or mean + 6 * deviation < low or mean - 6 * deviation > high:
        raise SettingsError(
            f"truncated_normal: expected bounds within six deviations of the mean {mean}, found "
            f"{low} to {high}"
            "; take wider bounds, or uniform"
        )
    rng = generator(seed)
    values = rng.normal(mean, deviation, parameter.shape)
    outside = (values < low) | (values > high)
    while outside.any():
        values[outside] = rng.normal(mean, deviation, int(outside.sum()))
        outside = (values < low) | (values > high)
    parameter.data[...] = np.clip(values, low, high)
    return parameter


def xavier_uniform(parameter: Parameter, gain: float = 1.0, seed: int | None = None) -> Parameter:
    """Draw from U(-b, b), b = gain * sqrt(6 / (fan-in + fan-out)) (X. Glorot, Y. Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(parameter)))
    return uniform(parameter, -bound, bound, seed)


def xavier_normal(parameter: Parameter, gain: float = 1.0, seed: int | None = None) -> Parameter:
    """Draw from N(0, gain**2 * 2 / (fan-in + fan-out))."""
    return normal(parameter, 0.0, gain * math.sqrt(2 / sum(fans(parameter))), seed)


def kaiming_uniform(
    parameter: Parameter,
    slope: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    seed: int | None = None,
) -> Parameter:
    """Draw from U(-b, b), b = gain * sqrt(3 / fan) (K. He et al., arXiv 1502.01852).

    Parameters
    ----------
    parameter : Parameter
    slope : float
        Slope of the following leaky ReLU; 0 for a ReLU.
    mode : "fan_in" or "fan_out"
        Whether activations ("fan_in") or gradients ("fan_out") keep their variance.
    nonlinearity : str
        See :func:`gain`.
    seed : int, optional
    """
    bound = math.sqrt(3) * _kaiming(parameter, slope, mode, nonlinearity)
    return uniform(parameter, -bound, bound, seed)


def kaiming_normal(
    parameter: Parameter,
    slope: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    seed: int | None = None,
) -> Parameter:
    """Draw from N(0, gain**2 / fan); arguments as :func:`kaiming_uniform`'s."""
    return normal(parameter, 0.0, _kaiming(parameter, slope, mode, nonlinearity), seed)


def orthogonal(parameter: Parameter, gain: float = 1.0, seed: int | None = None) -> Parameter:
    """Fill with a random matrix (out, rest) of orthogonal rows or columns (A. Saxe, 1312.6120).

    Examples
    --------
    >>> parameter = nn.Linear(3, 2, bias=False).weight
    >>> w = orthogonal(parameter, seed=0).data
    >>> np.round(w @ w.T, 3) + 0
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    fans(parameter)
    rows, columns = parameter.shape[0], math.prod(parameter.shape[1:])
    square = generator(seed).standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(square)
    q *= np.sign(np.diag(r))  # so that all such matrices are equally likely
    parameter.data[...] = gain * (q if rows >= columns else q.T).reshape(parameter.shape)
    return parameter


def bilinear(parameter: Parameter) -> Parameter:
    """Fill filters (out, kh, kw, in) of a transposed convolution that interpolates linearly.

    Examples
    --------
    >>> layer = nn.ConvTranspose2d(1, 1, 4, stride=2, padding=1)
    >>> bilinear(layer.weight).data[0, 0, :, 0]
    array([0.0625, 0.1875, 0.1875, 0.0625], dtype=float32)
    """
    if len(parameter.shape) != 4:
        raise ShapeError(f"bilinear: expected filters (out, kh, kw, in), found {parameter.shape}")
    slopes = []
    for size in parameter.shape[1:3]:
        half = (size + 1) // 2
        centre = half - 1 if size % 2 else half - 0.5
        slopes.append(1 - np.abs(np.arange(size) - centre) / half)
    parameter.data[...] = np.outer(*slopes)[None, :, :, None]
    return parameter


def _kaiming(parameter: Parameter, slope: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise SettingsError(f"kaiming: mode: expected fan_in or fan_out, found {mode!r}")
    return gain(nonlinearity, slope) / math.sqrt(fans(parameter)[mode == "fan_out"])


glorot_uniform, glorot_normal = xavier_uniform, xavier_normal
he_uniform, he_normal = kaiming_uniform, kaiming_normal
