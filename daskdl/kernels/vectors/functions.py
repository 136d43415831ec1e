"""Elementary functions by libm, in place of those of numpy that are other code with AVX-512.

numpy's own exp, log, sin, cos and tanh of float32 are the same on all processors with AVX2 and FMA.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]


def _by(kernel: Any, numpys: Any, *arrays: Any) -> Array:
    """Return a function of floats, which are broadcast; of other numbers it is numpy's."""
    dtype = np.result_type(*arrays)
    if dtype not in (np.float32, np.float64):
        return numpys(*arrays)
    whole = np.broadcast_arrays(*(np.asarray(a, dtype) for a in arrays))
    result = np.empty(whole[0].shape, dtype)
    rows = *map(flat, whole), result.reshape(-1)
    if result.size:
        over_rows(kernel, rows, grain.EXPONENTIAL)
    return result


def _kernel(function: Any) -> Any:
    """Compile one of the functions of :mod:`math`, each under a name and in a file of its own.

    What the kernel closes over is a function of Python's, which numba's cache knows by its name.
    """

    def kernel(x, result):
        for k in range(result.size):
            result[k] = function(x[k])

    kernel.__name__ = kernel.__qualname__ = f"_{function.__name__}"
    return jit(kernel)


def _made(function: Any, numpys: Any) -> Callable[[Any], Array]:
    kernel = _kernel(function)
    return lambda x: _by(kernel, numpys, x)


@jit
def _power(x, exponent, result):
    for k in range(result.size):
        result[k] = math.pow(x[k], exponent[k])


def power(x: Any, exponent: Any) -> Array:
    """Return x to the power of an exponent."""
    if np.ndim(exponent) == 0 and exponent in (-1, 0, 0.5, 1, 2):
        return np.power(x, exponent)  # no power at all
    return _by(_power, np.power, x, exponent)


_exp, _log = _made(math.exp, np.exp), _made(math.log, np.log)


def exp(x: Array) -> Array:
    """Return e to the power of x."""
    return _exp(x) if np.asarray(x).dtype == np.float64 else np.exp(x)


def log(x: Array) -> Array:
    """Return the natural logarithm."""
    return _log(x) if np.asarray(x).dtype == np.float64 else np.log(x)


# Functions of an array, each as numpy's of that name.
log1p, expm1 = _made(math.log1p, np.log1p), _made(math.expm1, np.expm1)
tan, sinh, cosh = _made(math.tan, np.tan), _made(math.sinh, np.sinh), _made(math.cosh, np.cosh)
arcsin, arcsinh = _made(math.asin, np.arcsin), _made(math.asinh, np.arcsinh)
arccos, arccosh = _made(math.acos, np.arccos), _made(math.acosh, np.arccosh)
arctan, arctanh = _made(math.atan, np.arctan), _made(math.atanh, np.arctanh)
