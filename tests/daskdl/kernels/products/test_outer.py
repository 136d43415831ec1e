"""Products of long matrices: any sizes, parts of sums and of columns, what is left to BLAS."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.products import outer
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime.threads import thread_budget

SIZES = [  # rows of both, columns of either
    (5000, 512, 200), (5000, 200, 512), (2500, 33, 257), (3001, 64, 64), (60000, 5, 3),
    (1024, 256, 1000), (1100, 1100, 70), (900, 70, 900), (600, 6, 599), (193, 193, 192),
]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_is_numpys_product(sizes, threads):
    k, m, n = sizes
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(k, m)).astype("f4"), rng.normal(size=(k, n)).astype("f4")
    a[k // 2, m - 1], b[k - 1, 0] = np.inf, np.nan
    with thread_budget(threads):
        found = outer.product(a, b)
        again = outer.product(a, b)
    assert found.flags.c_contiguous
    with np.errstate(invalid="ignore"):
        expected = a.astype("f8").T @ b.astype("f8")
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * k**0.5)
    np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("own", [6, 7])
def test_copies_the_columns_that_fill_its_panels(own, monkeypatch):
    read, whole = [], outer.over_range

    def watched(body, items, least, a, b, *rest):
        read.append(a.shape[1])
        whole(body, items, least, a, b, *rest)

    monkeypatch.setattr(outer, "over_range", watched)
    full, ragged = (np.ones((4000, n), "f4") for n in (4 * outer.COLUMNS, own * outer.ROWS))
    for a, b in [(full, ragged), (ragged, full)]:
        np.testing.assert_array_equal(outer.product(a, b), a.T @ b)
    assert read == [ragged.shape[1]] * 2


def test_products_of_long_matrices_come_here(monkeypatch):
    served = []
    monkeypatch.setattr(outer, "product", lambda a, b: served.append((a.shape, b.shape)))
    long, beside = np.ones((4000, 100), "f4"), np.ones((4000, 30), "f4")
    wide, short = np.ones((4000, outer.WIDEST + 1), "f4"), np.ones((100, 4000), "f4")
    matmul(long.T, beside)
    matmul(wide.T, beside)
    assert served == [(long.shape, beside.shape), (wide.shape, beside.shape)]
    matmul(long.astype("f8").T, beside.astype("f8"))
    matmul(long.T[::2], beside)
    matmul(long.T, np.repeat(beside, 2, axis=1)[:, ::2])
    matmul(wide.T, wide)
    matmul(np.repeat(wide, 2, axis=1).T, beside)
    matmul(short.T, short)
    matmul(short, beside)
    matmul(long.T, beside, out=np.empty((100, 30), "f4"))
    assert len(served) == 2
