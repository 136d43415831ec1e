"""Fourier transforms: gradients, numpy's numbers, and there and back."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
def test_transforms(parts, length, inverse, one_sided):
    if one_sided and inverse and length == 5:
        pytest.skip("numpy cuts what comes before, which is compared below")
    x = normal(2, 7, 3, parts)
    given = {"axis": 1, "length": length, "inverse": inverse, "one_sided": one_sided}
    check_gradient(lambda t: ops.dft(t, **given), x)
    z = x[..., 0] + 1j * x[..., 1] if parts == 2 else x[..., 0]
    found = ops.dft(x, **given).data
    if inverse and one_sided:
        n = length or 12
        np.testing.assert_allclose(found[..., 0], np.fft.irfft(z, n, 1), atol=1e-12)
        return
    right = (np.fft.ifft if inverse else np.fft.fft)(z, length or 7, 1)
    right = right[:, : (length or 7) // 2 + 1] if one_sided else right
    np.testing.assert_allclose(found, np.stack([right.real, right.imag], -1), atol=1e-12)


def test_single_precision_stays():
    x = normal(2, 7, 1).astype("f4")
    assert ops.dft(x, axis=1).dtype == np.float32
    with pytest.raises(ShapeError, match="an axis before its last"):
        ops.dft(x, axis=-1)
