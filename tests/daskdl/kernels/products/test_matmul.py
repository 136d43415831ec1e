"""Matrix products called from Python, MKL's where it is installed, and affine maps."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.kernels.products import matmul as module
from daskdl.kernels.products.affine import Affine
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.products.pointwise import FEW
from daskdl.kernels.runtime import mkl
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget


def turned(x):
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def in_columns(x):
    wide = np.full((*x.shape[:-1], x.shape[-1] + 5), np.nan, x.dtype)
    wide[..., 2:-3] = x
    return wide[..., 2:-3]


def every_second(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


def backwards(x):
    return x[..., ::-1, :].copy()[..., ::-1, :]


LAYOUTS = [np.ascontiguousarray, turned, in_columns, every_second, backwards]
layouts = st.sampled_from(LAYOUTS)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*[st.sampled_from([0, 1, 2, 3, 64, 131, 900])] * 3),
    lay_a=layouts, lay_b=layouts, lay_out=st.sampled_from([None, np.ascontiguousarray, in_columns]),
    threads=st.integers(1, 3),
)  # fmt: skip
def test_products_of_any_layout(dtype, sizes, lay_a, lay_b, lay_out, threads):
    m, k, n = sizes
    rng = np.random.default_rng(sizes)
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    out = lay_out(np.full((m, n), np.nan, dtype)) if lay_out else None
    with thread_budget(threads):
        product = matmul(lay_a(a), lay_b(b), out=out)
    assert product.dtype == dtype
    assert out is None or product is out
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(product, expected, atol=200 * np.finfo(dtype).eps * k**0.5)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    leads=st.sampled_from([((4,), (4,)), ((4,), ()), ((), (4,)), ((3, 1), (3, 5)), ((1,), (2, 3))]),
    swap=st.booleans(), sizes=st.tuples(*[st.sampled_from([0, 1, 16, 70, 200])] * 3),
    lay_a=layouts, lay_b=layouts, threads=st.integers(1, 2),
)  # fmt: skip
def test_stacks_of_matrices(leads, swap, sizes, lay_a, lay_b, threads):
    (m, k, n), rng = sizes, np.random.default_rng(sizes)
    a = lay_a(rng.normal(size=(*leads[0], m, k)).astype(np.float32))
    b = lay_b(rng.normal(size=(*leads[1], k, n)).astype(np.float32))
    if swap and a.ndim == 4:  # heads next to the last axis, as in attention
        a = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)
    with thread_budget(threads):
        products = matmul(a, b)
    expected = np.matmul(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(products, expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(64, 84, 10), (1, 500, 70), (70, 500, 1), (300, 75, 43), (40, 9000, 70), (40, 200, 70)],
)
def test_layouts_and_threads_do_not_change_the_bits(m, k, n):
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((m, k), np.float32), draw.standard_normal((k, n), np.float32)
    out = np.empty((m, 2 * n), np.float32)[:, :n]
    results = []
    for threads in (1, 2, 3):
        with thread_budget(threads):
            results += [matmul(a, b), matmul(turned(a), b), matmul(a, turned(b)), matmul(a, b, out)]
            results.append(matmul(b.T, a.T).T)
    if module.mkl.library() is None:
        assert len({x.tobytes() for x in results}) == 1 + (1 in (m, n))


def test_a_sum_is_made_of_blocks_in_turn():
    """The reference adds fused products in three blocks, without vectors."""
    draw = np.random.default_rng(1)
    a, b = draw.standard_normal((7, 500), np.float32), draw.standard_normal((500, 40), np.float32)
    expected = np.zeros((7, 40), np.float32)
    for start in range(0, 500, 167):
        part = np.zeros((7, 40), np.float32)
        for k in range(start, min(start + 167, 500)):
            part = (part + a[:, k, None].astype(np.float64) * b[k].astype(np.float64)).astype("f4")
        expected += part
    with thread_budget(1):
        product = matmul(a, b)
    if module.mkl.library() is None:  # a sum in float64 is rounded twice, seldom to another number
        assert (product == expected).mean() > 0.999


def test_shapes_that_do_not_fit_raise_numpys_error():
    x = np.ones((600, 601), np.float32)
    with thread_budget(2), pytest.raises(ValueError, match="mismatch"):
        matmul(x, x)
    with thread_budget(2), pytest.raises(ValueError, match="mismatch"):
        matmul(x, x.T, out=np.zeros((300, 600), np.float32))  # and nothing beyond it is written


def test_a_result_of_another_dtype_is_converted():
    x, out = np.ones((300, 300), np.float32), np.zeros((300, 300))
    with thread_budget(2):
        matmul(x, x, out=out)
    np.testing.assert_array_equal(out, 300)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inside", "outside", "precision"),
    [
        *((*sizes, "float32") for sizes in [(5, 3), (300, 70), (64, 64), (17, 40), (1024, 40)]),
        *((*sizes, "bf16-pairs") for sizes in [(64, 96), (771, 33), (16, 200)]),
    ],
)
def test_rows_are_finished_and_have_the_same_bits_in_any_batch(inside, outside, precision):
    rng = np.random.default_rng(0)
    x, weight, residual = (
        rng.standard_normal(s, np.float32)
        for s in ((FEW + 5, inside), (outside, inside), (FEW + 5, outside))
    )
    bias = rng.standard_normal(outside, np.float32)
    with computing_in(precision):
        affine = Affine(weight, bias)
    exact = x.astype(float) @ weight.T + bias
    tolerance = 1e-4 if precision == "float32" else 0.01 * np.abs(exact).max()
    plain = affine(x)
    np.testing.assert_allclose(plain, exact, atol=tolerance)
    result = affine(x, residual, -1, 4)
    np.testing.assert_allclose(result, np.clip(exact + residual, -1, 4), atol=tolerance)
    for rows in (1, 4, 7, 19, 300, FEW + 5):
        for threads in (1, 2):
            with thread_budget(threads):
                np.testing.assert_array_equal(affine(x[-rows:]), plain[-rows:])
                part = affine(x[-rows:], residual[-rows:], -1, 4)
            np.testing.assert_array_equal(part, result[-rows:])


def test_leading_axes_stay():
    affine = Affine(np.ones((2, 3), np.float32))
    assert affine(np.ones((4, 5, 3), np.float32)).shape == (4, 5, 2)
    assert affine(np.ones((0, 3), np.float32)).shape == (0, 2)


ROOT = Path(__file__).resolve().parents[4]
needs_mkl = pytest.mark.skipif(mkl.library() is None, reason="the extra mkl is not installed")


@pytest.mark.slow
def test_products_are_computed_by_one_function():
    """An ``@`` or ``np.matmul`` elsewhere would be numpy's BLAS even where MKL is installed."""
    products = []
    for path in sorted((ROOT / "daskdl").rglob("*.py")):
        if path.name == "matmul.py" or path.is_relative_to(ROOT / "daskdl/data/image"):
            continue  # the matrices of images are 3 x 3
        if path.is_relative_to(ROOT / "daskdl/nn/operators"):
            continue  # products of whole numbers, which BLAS does not compute
        if path.name in ("geojson.py", "geotiff.py"):
            continue  # coordinates on the earth, 3 x 3
        for node in ast.walk(ast.parse(path.read_text())):
            operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            called = node.attr if isinstance(node, ast.Attribute) else None
            library = isinstance(getattr(node, "value", None), ast.Name) and node.value.id == "np"  # type: ignore[attr-defined]
            if operator or (library and called in {"matmul", "dot", "tensordot", "inner"}):
                products.append(f"{path.relative_to(ROOT)}:{node.lineno}")  # type: ignore[attr-defined]
    assert not products, f"use daskdl.kernels.products.matmul.matmul: {products}"


def test_without_mkl_no_threads_are_set(monkeypatch):
    monkeypatch.setattr(mkl, "library", lambda: None)
    assert mkl.set_local_threads(1) == 0


STEP = """
import numpy as np
from daskdl import nn, ops
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.tensor import Tensor
with thread_budget(2):
    x = Tensor(np.ones((4, 3, 8), np.float32))
    wx, wh = (Tensor(np.ones((64, n), np.float32), True) for n in (8, 16))
    outputs = ops.lstm(x, None, None, wx, wh, Tensor(np.zeros(64, np.float32), True), None)[0]
    linear = nn.Linear(16, 3)
    nn.MSELoss()(linear(outputs), np.zeros((4, 3, 3), np.float32)).backward()
"""


@needs_mkl
def test_the_products_of_a_training_step_are_mkls():
    """MKL logs every call. Products that kernels compute in parts are not MKL's."""
    run = subprocess.run(
        [sys.executable, "-c", STEP], env=os.environ | {"MKL_VERBOSE": "1"}, check=True,
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    calls = [line for line in run.stdout.splitlines() if "GEMM(" in line]
    # Three of the linear layer; three of the LSTM: inputs, and gradients to both weights.
    assert len(calls) >= 3 + 3


@needs_mkl
def test_every_thread_has_a_budget_of_its_own():
    def at_work() -> int:
        library = mkl.library()
        assert library is not None
        return int(library.MKL_Get_Max_Threads())

    before = at_work()
    with thread_budget(2):
        assert at_work() == 2
        with thread_budget(1):
            assert at_work() == 1
        assert at_work() == 2
    assert at_work() == before


def test_columns_that_are_packed_in_several_goes():
    draw = np.random.default_rng(3)
    a, b = (draw.normal(size=(rows, 60)).astype(np.float32) for rows in (1400, 1300))
    expected = a.astype(np.float64) @ b.T.astype(np.float64)
    np.testing.assert_allclose(matmul(a, b.T), expected, rtol=1e-5, atol=1e-4)
