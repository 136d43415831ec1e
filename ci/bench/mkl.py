"""``python -m ci.bench.mkl``: MKL's matrix products beside OpenBLAS's, on one thread.

Short products only, by turns, and the quickest of many: other programs on the machine disturb few
of them. Needs the extra ``mkl``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from daskdl.kernels.runtime import mkl

#: Rows, summands and columns, and what has such products.
SHAPES = (
    (256, 256, 256, "square"),
    (96, 160, 640, "step of an LSTM"),
    (1440, 64, 640, "inputs of an LSTM"),
)
TURNS = 1000


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> int:
    """Print a row for each shape."""
    if mkl.library() is None:
        print("MKL is not installed; pip install 'daskdl[mkl]'", file=sys.stderr)
        return 2
    mkl.set_local_threads(1)
    draw = np.random.default_rng(0)
    with threadpool_limits(1):
        for m, k, n, name in SHAPES:
            a, b = (draw.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
            out = np.empty((m, n), np.float32)
            ours, theirs = [], []
            for _ in range(TURNS):
                theirs.append(seconds(lambda a=a, b=b, out=out: np.matmul(a, b, out=out)))
                ours.append(seconds(lambda a=a, b=b, out=out: mkl.matmul(a, b, out)))
            work = 2e-9 * m * k * n
            print(
                f"{name:20s} OpenBLAS {work / min(theirs):6.1f}, MKL {work / min(ours):6.1f} "
                f"GFLOP/s, {min(theirs) / min(ours):.2f} of OpenBLAS's speed"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
