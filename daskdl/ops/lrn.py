"""Local response normalisation across channels."""

from __future__ import annotations

from daskdl.errors import SettingsError
from daskdl.kernels.norms import lrn as kernel
from daskdl.ops.arguments import check_floats
from daskdl.tensor import Array, op

__all__ = ["local_response_norm"]


@op
def local_response_norm(
    x: Array, *, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
):
    """Divide each number by a power of the squares of its neighbours in channels.

    ``y = x * (k + alpha / size * sum of squares) ** -beta``, the sum over ``size`` channels around
    each, of which those beyond the edges count as 0: PyTorch's formula and that of Caffe.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    size : int
        Channels of a window.
    alpha, beta, k : float

    Returns
    -------
    array (..., C)

    Raises
    ------
    ShapeError
        When x is a scalar or holds no float32 or float64.
    SettingsError
        When size is below 1.

    References
    ----------
    A. Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, NIPS
    2012, section 3.3 (where alpha is not divided by the size).

    Examples
    --------
    >>> ops.local_response_norm(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1. ,  0.5,  2. ], dtype=float32)
    """
    check_floats("local_response_norm", x)
    if size < 1 or size != int(size):
        raise SettingsError(
            f"local_response_norm: size: expected a whole number of at least 1, found {size}"
        )
    size = int(size)
    response = kernel.Response(size, alpha, beta, k)
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(0, x.shape[-1])
    y = kernel.forward(rows, response)

    def backward(dy: Array):
        return (kernel.backward(dy.reshape(rows.shape), rows, response).reshape(x.shape),)

    return y.reshape(x.shape), backward
