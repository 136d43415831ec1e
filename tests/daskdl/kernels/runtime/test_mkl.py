"""Intel's MKL: with the extra ``mkl`` installed every matrix product is its own."""

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

from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime import mkl
from daskdl.kernels.runtime.threads import thread_budget

ROOT = Path(__file__).resolve().parents[4]
needs_mkl = pytest.mark.skipif(mkl.library() is None, reason="the extra mkl is not installed")
sizes = st.integers(0, 7)


@pytest.mark.slow
def test_products_are_asked_of_one_place():
    """An ``@`` or ``np.matmul`` elsewhere would be numpy's BLAS even where MKL is installed."""
    found = []
    for path in sorted((ROOT / "daskdl").rglob("*.py")):
        if path.name == "matmul.py" or path.is_relative_to(ROOT / "daskdl/data/image"):
            continue  # the matrices of images are 3 x 3
        if path.is_relative_to(ROOT / "daskdl/nn/operators"):
            continue  # products of whole numbers, which BLAS has none of
        if path.name in ("geojson.py", "geotiff.py"):
            continue  # places on the earth, 3 x 3
        for node in ast.walk(ast.parse(path.read_text())):
            operator = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            called = node.attr if isinstance(node, ast.Attribute) else None
            library = isinstance(getattr(node, "value", None), ast.Name) and node.value.id == "np"  # type: ignore[attr-defined]
            if operator or (library and called in {"matmul", "dot", "tensordot", "inner"}):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")  # type: ignore[attr-defined]
    assert not found, f"use daskdl.kernels.products.matmul.matmul: {found}"


def test_without_it_nobody_has_threads_of_it(monkeypatch):
    monkeypatch.setattr(mkl, "library", lambda: None)
    assert mkl.set_local_threads(1) == 0


@needs_mkl
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(m=sizes, k=sizes, n=sizes, lead=st.integers(0, 2), order=st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_products_of_any_shape_and_layout(dtype, m, k, n, lead, order):
    rng = np.random.default_rng([m, k, n, lead, order])

    def operand(rows: int, columns: int, how: int) -> np.ndarray:
        x = rng.normal(size=(*(2,) * lead, rows, 2 * columns)).astype(dtype)[..., ::2]
        turned = np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
        return (x, np.ascontiguousarray(x), turned)[how]

    a, b = operand(m, k, order % 3), operand(k, n, order // 3)
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(matmul(a, b), np.matmul(a, b), rtol=tolerance, atol=tolerance)


STEP = """
import numpy as np
from daskdl import nn, ops
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
    """As MKL itself tells of every call. What kernels multiply in parts is their own product."""
    run = subprocess.run(
        [sys.executable, "-c", STEP], env=os.environ | {"MKL_VERBOSE": "1"}, check=True,
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    calls = [line for line in run.stdout.splitlines() if "GEMM(" in line]
    # Three of the linear layer; of the LSTM all inputs, and the gradients to both weights.
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
