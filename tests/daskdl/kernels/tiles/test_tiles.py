"""Sums in the order of AMX's tiles: one order, with the instructions and without, however cut."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.norms import batchnorm
from daskdl.kernels.products.bfloat16 import along
from daskdl.kernels.runtime import precision
from daskdl.kernels.runtime.precision import computing_in, permitted
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.tiles import convolution, gradient, matmul, product, trusted
from daskdl.kernels.tiles.joining import Joining
from tests.daskdl.convolutions import correlate, correlate_weight_gradient

ROOT = Path(__file__).resolve().parents[4]
ways = pytest.mark.parametrize("amx", [False, pytest.param(True, marks=pytest.mark.skipif(
    not permitted(), reason="this processor has no AMX"))], ids=["ordinary", "amx"])  # fmt: skip


@pytest.fixture
def use_amx(monkeypatch):
    """Return a function that has products computed with AMX, or without."""

    def choose(amx: bool) -> None:
        for module in (product, gradient):
            monkeypatch.setattr(module, "usable", lambda: amx)

    return choose


def rounded(x):
    """Round float32 numbers to 8 bits, ties to even; denormals become zeros."""
    bits = x.view(np.uint32)
    word = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return flushed(word.astype(np.uint32).view(np.float32))


def flushed(x):
    return np.where(np.abs(x) < np.float32(2**-126), np.float32(0), x)


def in_tiles(a, b):
    """Return a (M, K) @ b (K, N) of rounded numbers, added up as a tile does."""
    padded = -a.shape[1] % 32
    a, b = np.pad(a, ((0, 0), (0, padded))), np.pad(b, ((0, padded), (0, 0)))
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for start in range(0, a.shape[1], 32):
        parts = []
        for half in range(2):
            part = np.zeros_like(total)
            for k in range(start + half, start + 32, 2):
                exact = a[:, k, None].astype(np.longdouble) * b[None, k] + part
                part = flushed(exact.astype(np.float32))
            parts.append(part)
        total = flushed(total + flushed(parts[0] + parts[1]))
    return total


@pytest.mark.slow
@ways
@pytest.mark.parametrize(
    "scale",
    [0, *(pytest.param(n, marks=pytest.mark.long) for n in (40, -60, -66))],
    ids=["ordinary", "large", "small", "denormal"],
)
def test_products_are_added_up_in_the_order_of_tiles(scale, amx, use_amx):
    use_amx(amx)
    rng = np.random.default_rng(0)
    for m, k, n in ((37, 70, 40), (5, 16, 17), (64, 1100, 33)):
        a, b = (
            (rng.normal(size=shape) * np.exp2(rng.integers(-8, 8, shape) + scale)).astype(
                np.float32
            )
            for shape in ((m, k), (k, n))
        )
        expected = in_tiles(rounded(a), rounded(b))
        for left, right in (
            (a, b),
            (a, np.ascontiguousarray(b.T).T),
            (np.ascontiguousarray(a.T).T, b),
        ):
            np.testing.assert_array_equal(matmul.matmul(left, right), expected)


@pytest.mark.slow
@ways
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_convolution_is_one_product_for_each_window(data, amx):
    draw = data.draw
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)), "kernel")
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)), "stride")
    dilation = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)), "dilation")
    pad = draw(st.tuples(*[st.integers(0, 3)] * 4), "pad")
    geometry = Geometry(kernel, stride, pad, dilation)
    least = (max(1, r - p - q) for r, p, q in zip(geometry.reach, pad[::2], pad[1::2], strict=True))
    size = tuple(n + draw(st.integers(0, 9), "pixels") for n in least)
    channels, filters, images = (draw(st.integers(1, n), "number") for n in (70, 40, 3))
    rng = np.random.default_rng(draw(st.integers(0, 99), "seed"))
    x = rng.normal(size=(images, *size, channels)).astype(np.float32)
    weight = rng.normal(size=(filters, *kernel, channels)).astype(np.float32)
    dy = rng.normal(size=(images, *geometry.size(*size), filters)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        for module in (product, gradient):
            patch.setattr(module, "usable", lambda: amx)
        y = convolution.forward(along(x), weight, geometry, size)
        dx = convolution.input_gradient(along(dy), weight, geometry, size)
        dw = convolution.weight_gradient(along(x), along(dy), geometry, weight)
        with thread_budget(2):
            np.testing.assert_array_equal(y, convolution.forward(along(x), weight, geometry, size))
        one = convolution.forward(along(x[-1:]), weight, geometry, size)
        np.testing.assert_array_equal(one, y[-1:])
    exact, windows, slope = (rounded(a).astype(np.float64) for a in (x, weight, dy))
    for actual, expected in (
        (y, correlate(exact, windows, geometry)),
        (dw, correlate_weight_gradient(exact, slope, geometry)),
    ):
        scale = 1 + np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-5 * scale)
    for other in rng.normal(size=(3, *x.shape)):  # dx is the adjoint
        products = slope * correlate(other, windows, geometry)
        error = (dx * other).sum() - products.sum()
        assert abs(error) < 1e-6 * (1 + np.abs(products).sum())


@pytest.mark.slow
@ways
@pytest.mark.parametrize("filters", [64, 40])
def test_numbers_that_are_stored_as_bfloat16_are_those_that_readers_round(filters, amx, use_amx):
    use_amx(amx)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 9, 7, 48)).astype(np.float32)
    weight, bias = rng.normal(size=(filters, 3, 3, 48)), rng.normal(size=filters)
    with computing_in("bf16-tiles"):
        layer = Convolution(weight.astype("f4"), bias.astype("f4"), Geometry((3, 3)), 5)
        residual = rng.normal(size=layer.shape_of(x)).astype(np.float32)
        whole = layer(x, residual, -0.5, 20.0)
        for start in (x, along(x).view(np.uint16)):
            np.testing.assert_array_equal(layer(start, residual, -0.5, 20.0), whole)
            halves = layer(start, residual, -0.5, 20.0, True)
            np.testing.assert_array_equal(halves, along(whole).view(np.uint16))


def test_joined_and_normed_numbers_are_those_of_separate_passes():
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(2, 5, 9, width)).astype(np.float32) for width in (32, 96)]
    parts[1][0, 0, 0, 0] = np.nan
    joined = np.concatenate(parts, -1)
    np.testing.assert_array_equal(Joining(None)(*parts), along(joined).view(np.uint16))
    norm = rng.normal(size=(3, 128))
    expected = along(np.clip(batchnorm.normalise(joined, *norm, False), 0, 1)).view(np.uint16)
    for threads in (1, 2):
        with thread_budget(threads):
            actual = Joining(batchnorm.float_lanes(*norm), 0, 1)(*parts)
            np.testing.assert_array_equal(actual, expected)


def test_a_processor_with_other_sums_is_not_used(monkeypatch, caplog):
    sums = trusted.multiplied
    monkeypatch.setattr(trusted, "permitted", lambda: True)
    for wrong in (0, 1):
        monkeypatch.setattr(
            trusted, "multiplied", lambda a, b, amx, wrong=wrong: sums(a, b, False) + wrong * amx
        )
        assert trusted.usable.__wrapped__() != bool(wrong)
        assert ("bfloat16 are computed without" in caplog.text) == bool(wrong)


@pytest.mark.parametrize(("present", "answer"), [(True, 0), (True, -1), (False, 0)])
def test_the_operating_system_is_asked_for_amx(present, answer, monkeypatch, caplog):
    named, asked = {"amx-tile", "amx-bf16", "amx-int8", "avx512bf16"}, []
    monkeypatch.setattr(precision, "features", lambda: named if present else named - {"amx-int8"})
    system = SimpleNamespace(syscall=lambda *numbers: asked.append(numbers) or answer)
    monkeypatch.setattr(precision, "ctypes", SimpleNamespace(
        CDLL=lambda *_, **__: system, get_errno=lambda: 95
    ))  # fmt: skip
    assert precision.permitted.__wrapped__() == (present and answer == 0)
    assert asked == [(158, 0x1023, 18)] * present  # arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA
    assert ("does not let this process use AMX" in caplog.text) == (answer != 0)


@pytest.mark.long
def test_a_caller_is_compiled_where_the_assembly_comes_from_the_cache(tmp_path):
    """LLVM ends a process that assembles without a parser: it is initialised at import."""
    script = (
        "import numpy as np; from daskdl.kernels.tiles import matmul\n"
        "print(matmul.matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32))[0, 0])"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, "3.0\n")
        # _multiply is compiled first, and only calls the assembly.
        names = "product._parts-*", "product._multiply-*"
        files = [path for name in names for path in tmp_path.rglob(name) if path.suffix != ".lock"]
        assert len(files) >= 4
        for path in files:
            path.unlink()
