"""The innermost product: every depth, rows that repeat, sums that are added to."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import daskdl.kernels
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    ROWS,
    SEGMENT,
    address,
    keep,
    multiply,
)
from daskdl.kernels.products.packing import pack


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
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("depth", "segments"), [(1, 1), (7, 1), (12, 3), (250, 2)])
@pytest.mark.parametrize("rows", [1, ROWS - 1, ROWS])
def test_product(depth, segments, rows, add, dtype):
    rng = np.random.default_rng(depth)
    a, b = (rng.normal(size=s).astype(dtype) for s in ((rows, depth), (depth, COLUMNS)))
    c = np.full((ROWS, COLUMNS + 3), 5, dtype)
    block(a, b, c, segments, rows, add)
    np.testing.assert_allclose(
        c[:rows, 1 : 1 + COLUMNS], a @ b + (5 if add else 0), rtol=1e-4, atol=1e-4
    )
    assert (c[rows:] == 5).all()
    assert (c[:, 0] == 5).all()
    assert (c[:, 1 + COLUMNS :] == 5).all()


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
    """Yield the names of a kernel's own arrays of which it takes addresses, and the last line."""
    names = {}  # by array: what names it, which may be a view
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
def test_arrays_whose_addresses_are_in_use_are_named_until_then():
    """numba frees an array after its last name; its memory may be another thread's at once."""
    found = 0
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
                found += 1
                assert last >= max(loops, default=0), f"{path.name}: {kernel.name}: keep({array})"
    assert found >= 10
