"""Discrete Fourier transforms of real and complex numbers."""

from __future__ import annotations

import numpy as np
from numpy import fft

from daskdl.errors import ShapeError
from daskdl.tensor import Array, op

__all__ = ["dft"]


@op
def dft(
    x: Array,
    *,
    axis: int,
    length: int | None = None,
    inverse: bool = False,
    one_sided: bool = False,
):
    """Compute the discrete Fourier transform along an axis, in the precision of x.

    Parameters
    ----------
    x : array (..., 1) or (..., 2)
        Real numbers, or real and imaginary parts.
    axis : int
    length : int, optional
        Length to which the axis is first filled with zeros, or cut.
    inverse : bool
        Whether to compute the inverse; its sum is divided by the length.
    one_sided : bool
        Whether only the first half of a real signal's spectrum is returned, or given to the
        inverse.

    Returns
    -------
    array (..., 2)
        Real and imaginary parts; (..., 1) for the inverse of one side, which is real.
    """
    axis %= x.ndim
    if axis == x.ndim - 1 or x.shape[-1] not in (1, 2):
        raise ShapeError(
            f"dft: expected x (..., 1) or (..., 2) and an axis before its last, found {x.shape} "
            f"and axis {axis}"
        )
    z = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
    old = x.shape[axis]
    back = inverse and one_sided
    n = length if length is not None else 2 * (old - 1) if back else old
    if back:
        y = fft.irfft(z, n, axis)[..., None]
    else:
        whole = fft.ifft(z, n, axis) if inverse else fft.fft(z, n, axis)
        if one_sided:
            whole = np.take(whole, np.arange(n // 2 + 1), axis)
        y = np.stack([whole.real, whole.imag], -1)

    def backward(dy: Array):
        if back:
            factor = np.full(n // 2 + 1, 2.0 / n)
            factor[0] /= 2
            if n % 2 == 0:
                factor[-1] /= 2
            shape = [1] * (x.ndim - 1)
            shape[axis] = len(factor)
            dz = fft.rfft(dy[..., 0], n, axis) * factor.reshape(shape)
        else:  # the conjugate transpose is the other transform, except for the factor
            d = dy[..., 0] + 1j * dy[..., 1]
            dz = fft.fft(d, n, axis) / n if inverse else fft.ifft(d, n, axis) * n
        length = min(old, dz.shape[axis])
        full = np.zeros((*x.shape[:-1],), dz.dtype)
        part = (slice(None),) * axis + (slice(length),)
        full[part] = dz[part]
        parts = (full.real, full.imag)[: x.shape[-1]]
        return (np.stack(parts, -1).astype(x.dtype, copy=False),)

    return y.astype(x.dtype, copy=False), backward
