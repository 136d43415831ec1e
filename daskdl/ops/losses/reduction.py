"""The reduction of losses to one number: the weighted mean over a batch's samples.

Every loss gives each of the N samples of a batch its own number l_i, the mean over the sample's
elements (its pixels, time steps or classes), from that sample alone. The loss is ::

    sum(w_i * l_i) / N

with the weights w from ``sample_weight``, or 1. It is divided by the number of samples and not by
the sum of weights, of class weights, or of labels that are not ignored: a shard does not know these
numbers of the other shards. So the mean of the shards' losses and gradients, weighted by their
samples, equals the whole batch's for any cut, and training on 1 or on 30 workers is the same. To
keep the scale of a loss without weights, use weights whose mean over the data set is 1.

Missing or ignored elements of a sample add nothing; each loss that has such elements says whether
the sample's mean leaves them out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, ShapeError
from daskdl.kernels.vectors.reduce import sum_over
from daskdl.ops.pointwise.activations import check_float
from daskdl.tensor import Array, Tensor, op

__all__ = ["loss"]

#: Function from a factor for each value, or one for all, to the gradient to one input.
Slope = Callable[[Array], Array]


@dataclass(frozen=True)
class Summed:
    """Values that are summed while they are computed, and not kept.

    Parameters
    ----------
    shape : tuple of int
        Shape of the values.
    sums : callable
        Function from a number of equal stretches of the values to their sums, float64.
    """

    shape: tuple[int, ...]
    sums: Callable[[int], NDArray[np.float64]]


#: Values (N, ...) with any elements of a sample, and the slope to each input, or None.
Parts = tuple[Array | Summed, tuple[Slope | None, ...]]

#: Number of values below which numpy sums them faster than threads begin.
FEW = 1 << 12


def loss(function: Callable[..., Parts]) -> Callable[..., Any]:
    """Make a loss from a function from arrays to (values, slopes).

    The function's positional arguments are arrays, the first of them float32 or float64; settings
    are keyword-only. Its values (N, ...) are averaged within each sample and then over the samples;
    each slope takes factors that broadcast with the values. The loss has one more setting,
    ``sample_weight``, an array (N,).

    Examples
    --------
    >>> @loss
    ... def absolute_difference(prediction, target):
    ...     difference = prediction - target
    ...     return np.abs(difference), (lambda factor: factor * np.sign(difference), None)
    >>> values = Tensor(np.array([[1.0, 3.0], [0.0, 0.0]]), requires_grad=True)
    >>> result = absolute_difference(values, np.zeros((2, 2)), sample_weight=[1.0, 9.0])
    >>> float(result)
    1.0
    >>> result.backward()
    >>> values.grad
    array([[0.25, 0.25],
           [0.  , 0.  ]])
    """
    name = function.__name__

    @op
    @functools.wraps(function)
    def operation(*arrays: Any, sample_weight: Any = None, **settings: Any) -> Any:
        first = np.asarray(arrays[0])
        check_float(name, first)
        values, slopes = function(first, *arrays[1:], **settings)
        value, factor = _reduced(name, values, sample_weight, first.dtype)

        def backward(dy: Array) -> tuple[Callable[[], Array] | None, ...]:
            factors = np.asarray(factor * dy, first.dtype)
            return tuple(None if s is None else functools.partial(s, factors) for s in slopes)

        return value, backward

    return operation


def _reduced(name: str, values: Array | Summed, weights: Any, dtype: Any) -> tuple[Array, Array]:
    """Return the loss, and its slope to each value as an array that broadcasts with the values."""
    size, n = math.prod(values.shape), values.shape[0] if values.shape else 1
    if weights is not None:
        weights = np.asarray(weights.data if isinstance(weights, Tensor) else weights)
        if weights.shape != (n,) or weights.dtype.kind not in "fiub":
            raise ShapeError(
                f"{name}: expected sample_weight to have a number for each sample, shape ({n},), "
                f"found {weights.dtype} {weights.shape}"
                "; give one weight a sample"
            )
    if not size:
        return np.asarray(np.nan, dtype), np.zeros((), dtype)
    if weights is None:
        if isinstance(values, Summed):
            total = float(values.sums(1)[0])
        elif size < FEW:
            total = float(np.add.reduce(values, axis=None, dtype=np.float64))
        else:
            total = float(sum_over(values, tuple(range(values.ndim))))
        return np.asarray(total / size, dtype), np.asarray(1 / size, dtype)
    if isinstance(values, Summed):
        sums = values.sums(n)
    else:
        sums = sum_over(values, tuple(range(1, values.ndim))).reshape(n)
    total = float((sums * weights).sum(dtype=np.float64))
    factors = np.asarray(weights / size, dtype)
    return np.asarray(total / size, dtype), factors.reshape(n, *(1,) * (len(values.shape) - 1))


def pair(name: str, prediction: Array, target: Any) -> Array:
    """Return the target in the prediction's dtype; raise a ShapeError unless shapes are equal."""
    target = np.asarray(target)
    if prediction.shape != target.shape or target.dtype.kind not in "fiub":
        raise ShapeError(
            f"{name}: expected a target of the prediction's shape {prediction.shape}, "
            f"found {target.dtype} {target.shape}"
            "; reshape it, such as y[:, None] for one number a sample"
        )
    return target.astype(prediction.dtype, copy=False)


def signs(name: str, target: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return a target of -1 and 1 in a dtype."""
    target = np.asarray(target)
    if target.shape != shape:
        raise ShapeError(f"{name}: expected a target of shape {shape}, found {target.shape}")
    wrong = target[np.abs(target) != 1]
    if wrong.size:
        raise DataError(
            f"{name}: expected targets of -1 and 1, found {wrong.flat[0]}"
            "; 2 * y - 1 makes them of 0 and 1"
        )
    return target.astype(dtype, copy=False)


def per_class(name: str, weight: Any, classes: int, dtype: Any) -> Array:
    """Return weights (classes,) in a dtype; raise a ShapeError unless each class has one."""
    weight = np.asarray(weight, dtype)
    if weight.shape != (classes,):
        raise ShapeError(
            f"{name}: expected a weight for each of {classes} classes, found shape {weight.shape}"
            "; give one a class, in their order"
        )
    return weight


def integer_labels(name: str, labels: Any, x: Array) -> Array:
    """Return labels (...) for x (..., classes); raise a ShapeError for other arrays."""
    labels = np.asarray(labels)
    if not x.ndim or labels.shape != x.shape[:-1] or labels.dtype.kind not in "iu":
        actual = f"found {labels.dtype} {labels.shape}"
        raise ShapeError(
            f"{name}: expected integer labels of shape {x.shape[:-1]}, {actual}"
            "; labels.astype(np.int64) makes whole numbers so, argmax(-1) one-hot rows"
        )
    return labels


def check_labels(name: str, labels: Array, classes: int) -> None:
    """Raise a ShapeError unless all labels are classes."""
    wrong = labels[(labels < 0) | (labels >= classes)]
    if wrong.size:
        raise ShapeError(
            f"{name}: expected labels from 0 to {classes - 1}, found {int(wrong.flat[0])}"
            "; count classes from 0, or make the model's last layer wider"
        )


def along_last(factor: Array) -> Array:
    """Return factors of values (...) in a shape that broadcasts with an array (..., C)."""
    return factor[..., None] if factor.ndim else factor
