"""``python -m ci.bench.mkl``: MKL's matrix products against OpenBLAS's and ours, on one thread.

Short products race against OpenBLAS's; products of affine maps with constant weights against ours,
in float32, bfloat16 and int8. Results have to agree: integers exactly, sums of bfloat16 numbers up
to their order. The thread's CPU time counts; a GFLOP of int8 is 10^9 operations on integers. Needs
the extra ``mkl``.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ci.bench.timing import Case, options_of, raced
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.prepared import Product
from daskdl.kernels.int8.scale import Scale
from daskdl.kernels.products.affine import Affine
from daskdl.kernels.runtime import mkl
from daskdl.kernels.runtime.precision import computing_in

#: Rows, summands and columns, and where such products occur.
SHAPES = (
    (256, 256, 256, "square"),
    (96, 160, 640, "step of an LSTM"),
    (1440, 64, 640, "inputs of an LSTM"),
)
#: Rows, columns and summands of affine maps.
AFFINE = (
    (2048, 3072, 768), (1024, 1024, 1024), (2048, 768, 3072), (128, 3072, 768), (3136, 256, 64)
)  # fmt: skip


def by_mkl(routine: str, a: Any, b: Any, out: Any, offsets: bool = False) -> Callable[[], object]:
    """Return a call of a routine for products of narrow numbers: ``a @ b.T``, row by row."""
    number, pointer = ctypes.c_float, ctypes.c_void_p
    (m, k), n = a.shape, len(b)
    zero, none = [ctypes.c_int8(0)] * offsets, (ctypes.c_int32 * 1)()
    arguments = (
        101, 111, 112, *[173] * offsets, m, n, k, number(1), pointer(a.ctypes.data), k, *zero,
        pointer(b.ctypes.data), k, *zero, number(0), pointer(out.ctypes.data), n,
        *[ctypes.byref(none)] * offsets,
    )  # fmt: skip
    return lambda: (getattr(mkl.library(), routine)(*arguments), a, b)


def affine(m: int, n: int, k: int, draw: np.random.Generator) -> Iterator[Case]:
    """Yield one affine map in three precisions, ours and MKL's, and check the results."""
    x, weight = (draw.normal(size=s).astype(np.float32) for s in ((m, k), (n, k)))
    y, out, work = *np.empty((2, m, n), np.float32), 2e-9 * m * n * k

    def case(kind: str, ours: Callable[[], object], theirs: Callable[[], object]) -> Case:
        ours(), theirs()
        return Case(f"{kind}/{m} x {n} x {k}", ours, {"MKL": theirs}, work, "GFLOP")

    yield case("float32", Affine(weight).work_of(y, x), partial(mkl.matmul, x, weight.T, out))
    halves = [((a.view(np.uint32) + 0x8000) >> 16).astype(np.uint16) for a in (x, weight)]
    x, weight = ((half.astype(np.uint32) << 16).view(np.float32) for half in halves)
    theirs = by_mkl("cblas_gemm_bf16bf16f32", *halves, out)
    with computing_in("bf16"):
        made = case("bf16", Affine(weight).work_of(y, x), theirs)
        if np.abs(y - out).max() > 1e-5 * np.abs(out).max() * k**0.5:
            raise AssertionError(f"{made.name}: other sums than MKL's")
        yield made
    a = draw.integers(0, 256, (m, k), np.uint8)
    b = draw.integers(-127, 128, (n, k), np.int8)
    one, whole = np.ones(n, np.float32), np.empty((m, n), np.int32)
    product = Product(b[:, None, None], one, 0 * one, Geometry((1, 1)), Scale(1.0, 0))
    theirs = by_mkl("cblas_gemm_s8u8s32", a, b, whole, True)
    made = case("int8", product.work_of(y, a), theirs)
    if not np.array_equal(y, whole.astype(np.float32)):
        raise AssertionError(f"{made.name}: other integers than MKL's")
    yield made


def cases() -> Iterator[Case]:
    """Yield the short products, then the affine maps."""
    draw = np.random.default_rng(0)
    for m, k, n, name in SHAPES:
        a, b = (draw.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
        out = np.empty((m, n), np.float32)
        blas, ours = partial(np.matmul, a, b, out=out), partial(mkl.matmul, a, b, out)
        yield Case(f"MKL/{name}", ours, {"OpenBLAS": blas}, 2e-9 * m * k * n, "GFLOP")
    for m, n, k in AFFINE:
        yield from affine(m, n, k, draw)


def main() -> int:
    """Print a row for each shape."""
    if mkl.library() is None:
        print("MKL is not installed; pip install 'daskdl[mkl]'", file=sys.stderr)
        return 2
    mkl.set_local_threads(1)
    with threadpool_limits(1):
        raced(options_of(__doc__, 1.0, "1").parse_args(), cases, clock=time.thread_time)
    return 0


if __name__ == "__main__":
    sys.exit(main())
