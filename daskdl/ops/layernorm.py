"""Layer normalisation over the last axis, or the last few."""

from __future__ import annotations

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.norms import layernorm as kernel
from daskdl.ops.arguments import check_floats, check_like
from daskdl.tensor import Array, op

__all__ = ["layer_norm"]


@op
def layer_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    axes: int = 1,
    eps: float = 1e-5,
):
    """Make each sample have mean 0 and variance 1 over its last axes, then scale and shift it.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    weight, bias : arrays of the last axes' shape, optional
        Scale and shift.
    axes : int
        How many of the last axes are normalised together.
    eps : float
        Is added to the variance.

    Returns
    -------
    array of x's shape

    Raises
    ------
    ShapeError
        When arguments do not fit each other.

    References
    ----------
    J. Ba et al., Layer Normalization, arXiv 1607.06450.

    Examples
    --------
    >>> ops.layer_norm(np.array([[1.0, 3.0]]), None, None).data.round(3)
    array([[-1.,  1.]])
    """
    check_floats("layer_norm", x)
    if not 1 <= axes <= x.ndim:
        raise SettingsError(
            f"layer_norm: axes: expected 1 to {x.ndim} for x of shape {x.shape}, found {axes}"
        )
    shape = x.shape[-axes:]
    check_like("layer_norm", x, shape, weight=weight, bias=bias)
    size = int(np.prod(shape))
    rows = x.reshape(-1, size) if x.size else x.reshape(0, size)
    scale = np.ones(size, x.dtype) if weight is None else weight.reshape(size)
    shift = np.zeros(size, x.dtype) if bias is None else bias.reshape(size)
    y, scales = kernel.forward(rows, scale, shift, eps)

    def backward(dy: Array):
        dx, totals = kernel.backward(dy.reshape(rows.shape), rows, scale, scales)
        d_weight, d_bias = totals.astype(x.dtype).reshape(2, *shape)
        return dx.reshape(x.shape), d_weight, d_bias

    return y.reshape(x.shape), backward
