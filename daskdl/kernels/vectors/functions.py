"""Elementary functions from libm, instead of numpy's that run other code with AVX-512.

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
    """Return a function of broadcast floats; for other numbers, numpy's function."""
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
    """Compile a function of :mod:`math`, under its own name and with its own file in the cache.

    The kernel closes over a Python function, which numba's cache identifies by its name.
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
        return np.power(x, exponent)  # numpy multiplies, divides or takes a root
    return _by(_power, np.power, x, exponent)


_exp, _log = _made(math.exp, np.exp), _made(math.log, np.log)


def exp(x: Array) -> Array:
    """Return e to the power of x."""
    return _exp(x) if np.asarray(x).dtype == np.float64 else np.exp(x)


def log(x: Array) -> Array:
    """Return the natural logarithm."""
    return _log(x) if np.asarray(x).dtype == np.float64 else np.log(x)


# Functions of an array, with numpy's names.
log1p, expm1 = _made(math.log1p, np.log1p), _made(math.expm1, np.expm1)
tan, sinh, cosh = _made(math.tan, np.tan), _made(math.sinh, np.sinh), _made(math.cosh, np.cosh)
arcsin, arcsinh = _made(math.asin, np.arcsin), _made(math.asinh, np.arcsinh)
arccos, arccosh = _made(math.acos, np.arccos), _made(math.acosh, np.arccosh)
arctan, arctanh = _made(math.atan, np.arctan), _made(math.atanh, np.arctanh)
