"""The innermost product, and products of packed, outer and gathered operands."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import daskdl.kernels
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution, JoinedConvolution
from daskdl.kernels.products import gathered, outer
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    DEPTH,
    FEW_ROWS,
    ROWS,
    SEGMENT,
    address,
    keep,
    multiply,
)
from daskdl.kernels.products.packed import _first, _large, packed, product, room_for
from daskdl.kernels.products.packing import pack
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.gradients import same_bits


@jit
def multiply_packed(a, panels, c, add):
    product(a, panels, c, add, room_for(a.shape[0], a), a[:0])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    add=st.booleans(),
    rows=st.integers(0, 3 * ROWS + 2),
    depth=st.sampled_from([1, 3, DEPTH, DEPTH + 5]),
    width=st.sampled_from([1, COLUMNS - 1, COLUMNS, 2 * COLUMNS + 3]),
)
def test_packed_product_is_numpys(dtype, rows, depth, width, add):
    rng = np.random.default_rng([rows, depth, width])
    a, b, c = (
        rng.normal(size=s).astype(dtype) for s in ((rows, depth), (depth, width), (rows, width))
    )
    expected = (c.astype(float) if add else 0) + a.astype(float) @ b
    multiply_packed(a, packed(b), c, add)
    np.testing.assert_allclose(c, expected, atol=300 * np.finfo(dtype).eps)


def test_groups_leave_one_row_idle_at_most():
    for rows in range(FEW_ROWS, 100):
        groups, large = -(-rows // ROWS), _large(rows)
        assert rows <= _first(groups, large) <= rows + 1


@pytest.mark.slow
def test_other_columns_are_left_alone():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(7, 9)), rng.normal(size=(4, 20)), rng.normal(size=(7, 25))
    expected = c.copy()
    expected[:, 2:22] += a[:, 3:7] @ b
    multiply_packed(a[:, 3:7], packed(b), c[:, 2:22], True)
    np.testing.assert_allclose(c, expected, atol=1e-12)


def test_weights_of_any_layout_are_packed():
    weight = np.arange(6 * 20.0).reshape(20, 6)
    weight.flags.writeable = False
    np.testing.assert_array_equal(packed(weight.T), packed(np.ascontiguousarray(weight.T)))


SIZES = [  # rows of both, columns of either
    (5000, 512, 200), (2500, 33, 257), (60000, 5, 3), (1024, 256, 1000), (1100, 1100, 70),
    (193, 193, 192),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_outer_product_is_numpys(sizes):
    k, m, n = sizes
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(k, m)).astype("f4"), rng.normal(size=(k, n)).astype("f4")
    a[k // 2, m - 1], b[k - 1, 0] = np.inf, np.nan
    result = same_bits(lambda: outer.product(a, b), 1, 2, 3, 3)
    assert result.flags.c_contiguous
    with np.errstate(invalid="ignore"):
        expected = a.astype("f8").T @ b.astype("f8")
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5 * k**0.5)


@pytest.mark.slow
@pytest.mark.parametrize("panels", [6, 7])
def test_the_matrix_whose_columns_fill_panels_is_copied(panels, monkeypatch):
    read, whole = [], outer.over_range

    def watched(body, items, least, a, b, *rest):
        read.append(a.shape[1])
        whole(body, items, least, a, b, *rest)

    monkeypatch.setattr(outer, "over_range", watched)
    full, ragged = (np.ones((4000, n), "f4") for n in (4 * outer.COLUMNS, panels * outer.ROWS))
    for a, b in [(full, ragged), (ragged, full)]:
        np.testing.assert_array_equal(outer.product(a, b), a.T @ b)
    assert read == [ragged.shape[1]] * 2


def test_outer_products_serve_long_matrices(monkeypatch):
    served = []
    monkeypatch.setattr(outer, "product", lambda a, b: served.append((a.shape, b.shape)))
    long, residual = np.ones((4000, 100), "f4"), np.ones((4000, 30), "f4")
    wide, short = np.ones((4000, outer.WIDEST + 1), "f4"), np.ones((100, 4000), "f4")
    matmul(long.T, residual)
    matmul(wide.T, residual)
    assert served == [(long.shape, residual.shape), (wide.shape, residual.shape)]
    matmul(long.astype("f8").T, residual.astype("f8"))
    matmul(long.T[::2], residual)
    matmul(long.T, np.repeat(residual, 2, axis=1)[:, ::2])
    matmul(wide.T, wide)
    matmul(np.repeat(wide, 2, axis=1).T, residual)
    matmul(short.T, short)
    matmul(short, residual)
    matmul(long.T, residual, out=np.empty((100, 30), "f4"))
    assert len(served) == 2


WIDTHS = (16, 48, 32, 64)
POINT = Geometry((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1)


def convolution(channels: int, filters: int) -> Convolution:
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((filters, 1, 1, channels), np.float32)
    return Convolution(weight, rng.standard_normal(filters, np.float32), POINT, 8)


def arrays(images: int, side: int, widths=WIDTHS) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((images, side, side, w), np.float32) for w in widths]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("images", "side", "filters"), [(1, 1, 24), (1, 7, 200), (3, 20, 8), (3, 20, 128)]
)
def test_parts_are_joined_normed_and_convolved(images, side, filters):
    parts, conv = arrays(images, side), convolution(sum(WIDTHS), filters)
    rng = np.random.default_rng(2)
    scale, shift = rng.standard_normal((2, sum(WIDTHS)), np.float32)
    joined = np.concatenate(parts, -1)
    residual = rng.standard_normal((images, side, side, filters), np.float32)
    normed = np.clip(joined * scale + shift, 0, 1.5)
    for joint, x, more in (
        (JoinedConvolution(conv), joined, (None, -np.inf, np.inf)),
        (JoinedConvolution(conv, scale, shift, 0.0, 1.5), normed, (residual, 0.0, np.inf)),
    ):
        expected = conv(x, *more)
        result = same_bits(lambda joint=joint, more=more: joint(*more, *parts))
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_an_image_has_the_same_bits_in_any_batch():
    parts, joint = arrays(4, 14), JoinedConvolution(convolution(sum(WIDTHS), 96))
    whole = joint(None, 0.0, np.inf, *parts)
    for threads in (1, 2):
        with thread_budget(threads):
            alone = joint(None, 0.0, np.inf, *(part[2:3].copy() for part in parts))
        np.testing.assert_array_equal(alone, whole[2:3])


@pytest.mark.slow
def test_nan_stays_nan():
    parts = arrays(1, 3, (16, 16))
    parts[1][0, 1, 1, 3] = np.nan
    result = JoinedConvolution(convolution(32, 8), low=0.0, high=1.0)(None, -np.inf, np.inf, *parts)
    assert np.isnan(result[0, 1, 1]).all()
    assert np.isnan(result).sum() == 8


def test_arrays_are_read_by_whole_vectors():
    assert gathered.serves([16, 64])
    assert not gathered.serves([16, 24])


@njit
def block(a, b, c, segments, rows, add):
    """c (rows, COLUMNS) = or += a (rows, K) @ b (K, COLUMNS), K cut into equal segments."""
    size, depth = a.itemsize, a.shape[1] // segments
    table, targets = np.empty((segments, SEGMENT), np.int64), np.empty(ROWS, np.int64)
    for s in range(segments):
        for i in range(ROWS):
            table[s, i] = address(a) + (min(i, rows - 1) * a.shape[1] + s * depth) * size
        table[s, ROWS], table[s, ROWS + 1] = s * depth * COLUMNS * size, depth
    for i in range(ROWS):
        targets[i] = address(c) + min(i, rows - 1) * (COLUMNS + 3) * size
    multiply(
        a, address(table), segments, size, address(b), COLUMNS * size, address(targets), size, add
    )
    keep(table)
    keep(targets)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("depth", "segments", "rows"),
    [(1, 1, ROWS), (7, 1, 1), (12, 3, ROWS - 1), (250, 2, ROWS)],
)
def test_innermost_product_is_numpys(depth, segments, rows, dtype):
    rng = np.random.default_rng(depth)
    a, b = (rng.normal(size=s).astype(dtype) for s in ((rows, depth), (depth, COLUMNS)))
    for add in (False, True):
        c = np.full((ROWS, COLUMNS + 3), 5, dtype)
        block(a, b, c, segments, rows, add)
        expected = np.full_like(c, 5)
        expected[:rows, 1 : 1 + COLUMNS] = a @ b + (5 if add else 0)
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("by_input", [False, True])
@pytest.mark.parametrize("channels", [(5, 3), (COLUMNS + 3, COLUMNS + 5), (COLUMNS, COLUMNS)])
def test_pack_puts_columns_together_and_fills_up_with_zeros(channels, by_input):
    filters, depth = channels
    weight = np.random.default_rng(0).normal(size=(filters, 4, depth))
    taps = np.array([2, 0])
    width, summed = (depth, filters) if by_input else (filters, depth)
    chosen = weight[:, taps].transpose((1, 0, 2) if by_input else (1, 2, 0)).reshape(-1, width)
    n_panels = -(-width // COLUMNS)
    panels = np.full((n_panels, 2, summed + 1, COLUMNS), np.nan)
    pack(weight, taps, by_input, 0, 0, summed, panels)
    assert np.isnan(panels[:, :, summed:]).all()
    side_by_side = panels[:, :, :summed].transpose(1, 2, 0, 3).reshape(2 * summed, -1)
    np.testing.assert_array_equal(side_by_side[:, :width], chosen)
    assert not side_by_side[:, width:].any()
    last = np.full((1, 2, summed, COLUMNS), np.nan)
    pack(weight, taps, by_input, (n_panels - 1) * COLUMNS, 0, summed, last)
    np.testing.assert_array_equal(last[0], panels[-1, :, :summed])
    some = np.full((n_panels, 2, summed - 1, COLUMNS), np.nan)
    pack(weight, taps, by_input, 0, 1, summed, some)
    np.testing.assert_array_equal(some, panels[:, :, 1:summed])


def made_and_addressed(kernel):
    """Yield the arrays that a kernel makes and takes addresses of, and the last line of each."""
    names = {}  # by array: the names of it and of its views
    for node in ast.walk(kernel):
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        else:
            pairs = [(target, value)]
        for name, made in pairs:
            text = ast.unparse(made)
            if isinstance(name, ast.Name) and text.startswith(("np.empty", "np.zeros", "np.full")):
                names[name.id] = {name.id}
            elif isinstance(name, ast.Name) and text.partition(".")[0] in names:
                names[text.partition(".")[0]].add(name.id)
    text = ast.unparse(kernel)
    for array, known in names.items():
        if any(f"address({name})" in text for name in known):
            lines = [n.lineno for n in ast.walk(kernel) if getattr(n, "id", None) in known]
            yield array, max(lines)


@pytest.mark.slow
def test_arrays_are_named_as_long_as_their_addresses_are_used():
    """numba frees an array after its last name; its memory may be another thread's at once."""
    count = 0
    for path in Path(daskdl.kernels.__file__).parent.rglob("*.py"):
        for kernel in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(kernel, ast.FunctionDef):
                continue
            loops = [
                node.lineno
                for node in kernel.body
                if isinstance(node, ast.For | ast.While) and ast.unparse(node.body) != "keep(array)"
            ]
            for array, last in made_and_addressed(kernel):
                count += 1
                assert last >= max(loops, default=0), f"{path.name}: {kernel.name}: keep({array})"
    assert count >= 10
