"""Vectors along the last axis, divided by their Euclidean length."""

from __future__ import annotations

from daskdl.kernels.norms import l2norm as kernel
from daskdl.ops.arguments import check_floats
from daskdl.tensor import Array, op

__all__ = ["normalize"]


@op
def normalize(x: Array, *, eps: float = 1e-12):
    """Divide each vector along the last axis by its Euclidean length, as PyTorch's ``normalize``.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    eps : float
        The least that is divided by.

    Returns
    -------
    array (..., C)

    Raises
    ------
    ShapeError
        When x is a scalar or holds no float32 or float64.

    Examples
    --------
    >>> ops.normalize(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.267, 0.535, 0.802], dtype=float32)
    """
    check_floats("normalize", x)
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(0, x.shape[-1])
    y, lengths = kernel.forward(rows, eps)

    def backward(dy: Array):
        return (kernel.backward(dy.reshape(y.shape), y, lengths, eps).reshape(x.shape),)

    return y.reshape(x.shape), backward
