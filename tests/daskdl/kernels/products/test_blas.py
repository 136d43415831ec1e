"""Products by BLAS, with an affine map at the end, and bfloat16 pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.products.affine import Affine
from daskdl.kernels.products.blas import gemm, gemm_scratch, gemm_tn
from daskdl.kernels.products.pointwise import FEW
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.threads import thread_budget

sizes = st.integers(1, 9)


@jit
def product(a, b, c, beta):
    gemm(a, b, c, beta, gemm_scratch(a))


@jit
def product_tn(a, b, c, beta):
    gemm_tn(a, b, c, beta, gemm_scratch(a))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(m=sizes, k=sizes, n=sizes, beta=st.sampled_from([0.0, 1.0, -0.5]))
def test_gemm_is_numpys_product(dtype, m, k, n, beta):
    rng = np.random.default_rng([m, k, n])
    a, b, c = (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, n), (m, n)))
    result, transposed = c.copy(), c.copy()
    product(a, b, result, beta)
    product_tn(np.ascontiguousarray(a.T), b, transposed, beta)
    tolerance = 40 * np.finfo(dtype).eps
    # numpy's own small products may warn of lanes that they do not use.
    expected = np.einsum("mk,kn->mn", a, b) + beta * c
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(transposed, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 5])
def test_rows_may_lie_apart(m):
    """Products of, and into, a range of columns leave the other columns alone."""
    rng = np.random.default_rng(m)
    a, b, c = rng.normal(size=(m, 7)), rng.normal(size=(3, 9)), rng.normal(size=(m, 8))
    for function, left in ((product, a[:, 2:5]), (product_tn, rng.normal(size=(3, m + 2))[:, :m])):
        result = c.copy()
        function(left, b[:, 1:5], result[:, 3:7], 1.0)
        expected = c.copy()
        expected[:, 3:7] += (left if function is product else left.T) @ b[:, 1:5]
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_beta_zero_ignores_what_was_in_the_result():
    a, c = np.eye(3), np.full((3, 3), np.nan)
    product(a, a, c, 0.0)
    np.testing.assert_array_equal(c, a)


@pytest.mark.parametrize("function", [gemm, gemm_tn])
def test_outside_numba_it_says_what_to_use(function):
    a = np.eye(2)
    with pytest.raises(NotImplementedError, match=r"daskdl\.kernels\.(products\.)?matmul"):
        function(a, a, a, 0.0, None)


@pytest.mark.slow
@pytest.mark.parametrize(("inside", "outside"), [(5, 3), (300, 70), (64, 64), (17, 40), (1024, 40)])
@pytest.mark.parametrize("rows", [1, 4, 7, 19, FEW + 5])
def test_rows_are_finished_and_have_their_own_bits(inside, outside, rows):
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, inside)).astype(np.float32)
    weight = rng.standard_normal((outside, inside)).astype(np.float32)
    bias = rng.standard_normal(outside).astype(np.float32)
    beside = rng.standard_normal((rows, outside)).astype(np.float32)
    made = Affine(weight, bias)
    found = made(x, beside, -1, 4)
    expected = np.clip(x.astype(float) @ weight.T + bias + beside, -1, 4)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    for threads in (1, 2):
        with thread_budget(threads):
            np.testing.assert_array_equal(made(x, beside, -1, 4), found)
            np.testing.assert_array_equal(made(x[-1:], beside[-1:], -1, 4), found[-1:])
    np.testing.assert_allclose(made(x), x.astype(float) @ weight.T + bias, atol=1e-4)


def test_leading_axes_stay():
    made = Affine(np.ones((2, 3), np.float32))
    assert made(np.ones((4, 5, 3), np.float32)).shape == (4, 5, 2)
    assert made(np.ones((0, 3), np.float32)).shape == (0, 2)
