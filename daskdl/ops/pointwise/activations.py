"""Activations: functions of each number, or over channels (softmax)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.losses import softmax as softmax_kernels
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors import activations as kernels
from daskdl.kernels.vectors import prelu as prelu_kernel
from daskdl.ops.arguments import FLOATS, of_one_array
from daskdl.tensor import Array, op

__all__ = [
    "elu",
    "gelu",
    "hard_sigmoid",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_softmax",
    "prelu",
    "relu",
    "relu6",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


def check_float(name: str, x: Array) -> None:
    """Raise a ShapeError unless ``x`` is an array of float32 or float64."""
    if x.dtype not in FLOATS:
        raise ShapeError(
            f"{name}: expected x of float32 or float64, found {x.dtype} {x.shape}"
            "; x.astype(np.float32) makes it so"
        )


def _activation(name: str, x: Any, *settings: float, keep: str = "x"):
    """Return the result of the named kernel, and its backward from ``x`` or from ``y``."""
    x = np.asarray(x)
    check_float(name, x)
    forward, back = getattr(kernels, name), getattr(kernels, f"{name}_back")
    vector = np.array(settings, x.dtype) if settings else None
    (y,) = one_pass(forward, x, settings=vector)
    saved = x if keep == "x" else y
    return y, lambda dy: tuple(one_pass(back, saved, dy, settings=vector))


def _without_settings(
    name: str, meaning: str, values: str, kernel: str = "", *settings: float, keep: str = "x"
) -> Any:
    """Make an operation from :func:`_activation` with ``kernel``, by default of the same name."""
    compute = functools.partial(_activation, kernel or name)
    return of_one_array(
        __name__,
        name,
        meaning,
        lambda x: compute(x, *settings, keep=keep),
        "-1.0, 0.5, 2.0",
        values,
    )


relu = _without_settings("relu", "max(x, 0); the gradient at 0 is 0.", "0. , 0.5, 2. ", keep="y")
relu6 = _without_settings("relu6", "min(max(x, 0), 6).", "0. , 0.5, 2. ", "clip", 0, 6, keep="y")
silu = _without_settings(
    "silu", "SiLU: ``x / (1 + exp(-x))``, also called swish.", "-0.269,  0.311,  1.762"
)
sigmoid = _without_settings(
    "sigmoid", "1 / (1 + exp(-x)), without overflow.", "0.269, 0.622, 0.881", keep="y"
)
tanh = _without_settings("tanh", "Hyperbolic tangent.", "-0.762,  0.462,  0.964", keep="y")
softplus = _without_settings(
    "softplus", "log(1 + exp(x)), without overflow.", "0.313, 0.974, 2.127"
)
hard_sigmoid = _without_settings(
    "hard_sigmoid", "Hard sigmoid: ``x / 6 + 1 / 2``, from 0 to 1.", "0.333, 0.583, 0.833"
)
hard_swish = _without_settings(
    "hard_swish",
    "Hard swish: ``x * hard_sigmoid(x)`` (A. Howard et al., arXiv 1905.02244).",
    "-0.333,  0.292,  1.667",
)


@op
def leaky_relu(x: Array, *, slope: float = 0.2):
    """Leaky ReLU: ``x`` where positive, ``slope * x`` elsewhere (A. Maas et al., 2013).

    Examples
    --------
    >>> ops.leaky_relu(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.25, 0.5 , 0.75], dtype=float32)
    """
    return _activation("leaky_relu", x, slope)


@op
def prelu(x: Array, slope: Array):
    """PReLU: ``x`` where positive, ``slope * x`` elsewhere; slope (C,) or (1,), learned.

    K. He et al., Delving Deep into Rectifiers, arXiv 1502.01852.

    Examples
    --------
    >>> ops.prelu(np.array([[-1.0, 2.0]]), np.array([0.25])).data
    array([[-0.25,  2.  ]])
    """
    check_float("prelu", x)
    if slope.shape not in (x.shape[-1:], (1,)):
        raise ShapeError(
            f"prelu: expected slope of shape {x.shape[-1:]}, the channels of x, or (1,), "
            f"found {slope.shape}"
            "; give a slope for each channel, or one for all"
        )
    y = prelu_kernel.forward(x, slope)
    return y, lambda dy: prelu_kernel.backward(x, slope, dy)


@op
def elu(x: Array, *, alpha: float = 1.0):
    """ELU: ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere (arXiv 1511.07289).

    Examples
    --------
    >>> ops.elu(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.25, 0.5 , 0.75], dtype=float32)
    """
    return _activation("elu", x, alpha)


@op
def gelu(x: Array, *, approximate: str = "none"):
    """GELU: ``x`` times the normal distribution function (D. Hendrycks and K. Gimpel, 1606.08415).

    ``approximate="tanh"`` selects the paper's formula with a hyperbolic tangent.

    Examples
    --------
    >>> ops.gelu(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.15 , 0.346, 0.58 ], dtype=float32)
    """
    if approximate not in ("none", "tanh"):
        raise SettingsError(f"gelu: expected approximate 'none' or 'tanh', found {approximate!r}")
    return _activation("gelu" if approximate == "none" else "gelu_tanh", x)


@op
def hard_tanh(x: Array, *, low: float = -1.0, high: float = 1.0):
    """Hard tanh: ``x`` limited to ``low`` and ``high``.

    Examples
    --------
    >>> ops.hard_tanh(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return _activation("clip", x, low, high, keep="y")


@op
def softmax(x: Array, *, axis: int = -1):
    """exp(x) / sum(exp(x)) along ``axis``, without overflow.

    Examples
    --------
    >>> ops.softmax(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([0.039, 0.175, 0.786], dtype=float32)
    """
    return _along("softmax", axis, softmax_kernels.softmax, softmax_kernels.softmax_gradient, x)


@op
def log_softmax(x: Array, *, axis: int = -1):
    """Log softmax: x - log(sum(exp(x))) along ``axis``, without overflow.

    Examples
    --------
    >>> ops.log_softmax(np.array([[0.0, 0.0]])).data.round(3)
    array([[-0.693, -0.693]])
    """
    return _along(
        "log_softmax", axis, softmax_kernels.log_softmax, softmax_kernels.log_softmax_gradient, x
    )


def _along(
    name: str,
    axis: int,
    forward: Callable[[Array], Array],
    gradient: Callable[[Array, Array], Array],
    x: Array,
):
    check_float(name, x)
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(
            f"{name}: expected an axis of x, whose shape is {x.shape}, found {axis}"
            "; count it from 0, or back from -1"
        )
    y = forward(np.moveaxis(x, axis, -1))

    def backward(dy: Array):
        return (np.moveaxis(gradient(y, np.moveaxis(dy, axis, -1)), -1, axis),)

    return np.moveaxis(y, -1, axis), backward
