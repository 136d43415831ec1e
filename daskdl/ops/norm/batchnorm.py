"""Batch normalisation over all axes except the last, fused with a following ReLU."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskdl.kernels.norms import batchnorm as kernel
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors.activations import relu_back
from daskdl.ops.arguments import check_floats, check_like
from daskdl.tensor import Array, InParts, Tensor, op

__all__ = ["Statistics", "batch_norm", "batch_norm_inference"]


class Statistics(NamedTuple):
    """Mean and variance of each channel of a batch, for running averages.

    Attributes
    ----------
    mean, variance : float64 arrays (C,)
        The variance is the population's, by which the batch was normalised.
    rows : int
        Number of values of each channel.

    Examples
    --------
    >>> _, statistics = ops.batch_norm(np.array([[1.0], [3.0]]), None, None)
    >>> statistics
    Statistics(mean=array([2.]), variance=array([1.]), rows=2)
    """

    mean: Array
    variance: Array
    rows: int

    @property
    def unbiased(self) -> Array:
        """The unbiased variance, whose running average PyTorch keeps."""
        return self.variance * (self.rows / max(1, self.rows - 1))

    def merged(self, other: Statistics) -> Statistics:
        """Return the statistics of both batches together, such as two shards'."""
        count = self.rows + other.rows
        if not count:
            return self
        part, between = other.rows / count, other.mean - self.mean
        variance = self.variance * (1 - part) + other.variance * part
        return Statistics(
            self.mean + between * part, variance + between * between * part * (1 - part), count
        )


def batch_norm(
    x: Any, weight: Any, bias: Any, residual: Any = None, *, eps: float = 1e-5, relu: bool = False
) -> tuple[Tensor, Statistics]:
    """Normalise each channel of a batch to mean 0 and variance 1, then scale and shift it.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    weight, bias : arrays (C,), optional
        Scale and shift.
    residual : array of x's shape, optional
        Added to the result, in the same pass over memory: a residual block's end.
    eps : float
        Added to the variance.
    relu : bool
        Whether a ReLU follows. It costs no pass over memory, neither forward nor backward; with a
        residual, one backward, whose result is the gradient to the residual.

    Returns
    -------
    y : Tensor (..., C)
    statistics : Statistics
        Statistics that a layer averages for inference.

    References
    ----------
    S. Ioffe and C. Szegedy, Batch Normalization, arXiv 1502.03167.
    """
    statistics: list[Statistics] = []
    y = _batch_norm(x, weight, bias, residual, eps=eps, relu=relu, collected=statistics)
    return y, statistics[0]


@op
def _batch_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    residual: Array | None,
    *,
    eps: float,
    relu: bool,
    collected: list[Statistics],
):
    check_floats("batch_norm", x)
    check_like("batch_norm", x, x.shape[-1:], weight=weight, bias=bias)
    count = x.size // max(1, x.shape[-1])
    mean, variance = kernel.moments(x) if x.size else np.zeros((2, x.shape[-1]))
    collected.append(Statistics(mean, variance, count))
    inverse, scale, shift = kernel.affine(variance, eps, weight, bias)
    y = _normalised(x, residual, mean, scale, shift, relu)
    relu_after, relu = relu and residual is not None, relu and residual is None

    def backward(dy: Array, more: Array | None = None):
        if relu_after:
            dy, sums = kernel.gradient_plus(dy, more, y, x, mean)
        else:
            sums = kernel.gradient_sums(dy, x, mean, scale, shift, relu)

        def to_input() -> Array:
            offset, slope = kernel.shares(inverse, scale, sums, max(1, count))
            return kernel.input_gradient(
                dy, x, mean, scale, shift, relu, offset=offset, slope=slope
            )

        total, slope = sums
        return to_input, (slope * inverse).astype(x.dtype), total.astype(x.dtype), dy

    return y, InParts(backward) if relu_after else backward


def batch_norm_inference(
    x: Any,
    mean: Array,
    variance: Array,
    weight: Any,
    bias: Any,
    residual: Any = None,
    *,
    eps: float = 1e-5,
    relu: bool = False,
) -> Tensor:
    """Normalise with given statistics, as after training; they get no gradient.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    mean, variance : arrays (C,)
    weight, bias : arrays (C,), optional
    residual, eps, relu
        As in :func:`batch_norm`.

    Returns
    -------
    array (..., C)

    Examples
    --------
    >>> x = np.array([[1.0, 10.0], [3.0, 30.0]])
    >>> mean, variance = np.array([2.0, 20.0]), np.array([1.0, 100.0])
    >>> batch_norm_inference(x, mean, variance, None, None).data.round(3)
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    return _inference(x, mean, variance, weight, bias, residual, eps=eps, relu=relu)


@op
def _inference(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    bias: Array | None,
    residual: Array | None,
    *,
    eps: float,
    relu: bool,
):
    check_floats("batch_norm_inference", x)
    arguments = {"mean": mean, "variance": variance, "weight": weight, "bias": bias}
    check_like("batch_norm_inference", x, x.shape[-1:], **arguments)
    centre = mean.astype(np.float64)
    inverse, scale, shift = kernel.affine(variance, eps, weight, bias)
    y = _normalised(x, residual, centre, scale, shift, relu)
    relu_after, relu = relu and residual is not None, relu and residual is None

    def backward(dy: Array):
        if relu_after:
            (dy,) = one_pass(relu_back, y, dy)
        none = np.zeros_like(centre)

        def to_input() -> Array:
            return kernel.input_gradient(dy, x, centre, scale, shift, relu, offset=none, slope=none)

        def sums() -> Array:
            return kernel.gradient_sums(dy, x, centre, scale, shift, relu)

        return (
            to_input,
            None,
            None,
            lambda: (sums()[1] * inverse).astype(x.dtype),
            lambda: sums()[0].astype(x.dtype),
            dy,
        )

    return y, backward


def _normalised(
    x: Array, residual: Array | None, mean: Array, scale: Array, shift: Array, relu: bool
) -> Array:
    if residual is not None:
        check_like("batch_norm", x, x.shape, residual=residual)
    return kernel.normalise(x, mean, scale, shift, relu, residual)
