"""Affine maps and products of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import nn, ops
from daskdl.kernels.attention import attention
from daskdl.kernels.products import packed
from daskdl.kernels.runtime.precision import computing_in, permitted
from daskdl.kernels.tiles import gradient, product
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.nn.like_pytorch import check_agreement


@given(
    shape=hnp.array_shapes(max_dims=4, max_side=4), out=st.integers(1, 5), with_bias=st.booleans()
)
def test_gradient_of_linear(shape, out, with_bias):
    x, weight = normal(*shape), normal(out, shape[-1], seed=1)
    bias = normal(out, seed=2) if with_bias else None
    expected = x @ weight.T + (bias if with_bias else 0)
    np.testing.assert_allclose(ops.linear(x, weight, bias).data, expected, atol=1e-12)
    check_gradient(ops.linear, x, weight, bias)


def test_an_input_that_is_a_view_has_a_gradient():
    x = normal(4, 3, 5).swapaxes(0, 1)
    check_gradient(ops.linear, x, normal(2, 5), None)


@pytest.mark.parametrize("dtype", ["f8", "f2", "u1", "i8", "?", ">f4"])
def test_numbers_of_another_kind_are_taken_in_the_dtype_of_the_weight(dtype):
    x = (3 * normal(2, 3, 5)).astype(dtype)
    weight, bias = (Tensor(normal(*s).astype("f4"), requires_grad=True) for s in ((4, 5), (4,)))
    y = ops.linear(x, weight, bias)
    y.backward(np.ones(y.shape, "f4"))
    assert y.dtype == weight.grad.dtype == np.float32
    same = ops.linear(x.astype("f4"), weight, bias)
    np.testing.assert_array_equal(y.data, same.data)
    np.testing.assert_allclose(weight.grad, np.tile(x.astype("f4").sum((0, 1)), (4, 1)), rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_prod(axis, keepdims):
    x = normal(3, 2, 4)
    check_gradient(lambda t: ops.prod(t, axis=axis, keepdims=keepdims), x)
    result = ops.prod(x, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(result.data, np.prod(x, axis=axis, keepdims=keepdims))


def test_the_gradient_of_prod_is_exact_at_zeros(torch):
    x = np.array([[2.0, 0, 3], [0, 0, 5]])
    ours, theirs = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    ops.prod(ours, axis=1).backward(np.ones(2))
    theirs.prod(1).sum().backward()
    np.testing.assert_array_equal(ours.grad, theirs.grad)
    empty = Tensor(np.zeros((2, 0)), requires_grad=True)
    ops.prod(empty, axis=1).backward(np.ones(2))
    assert empty.grad.shape == (2, 0)


def test_determinants(torch):
    x = normal(2, 3, 3)
    check_gradient(ops.det, x)
    check_agreement(torch, ops.det, torch.linalg.det, x)


CASES = [
    ("ij,jk->ik", [(3, 4), (4, 2)]),
    ("nij,njk", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
    ("...i,...i->...", [(2, 3, 4), (3, 4)]),
    ("ij->i", [(3, 4)]),
    ("ij->ji", [(3, 4)]),
    ("ii->i", [(3, 3)]),
    ("i,j,k->ki", [(2,), (3,), (4,)]),
    ("bij,bj->b", [(2, 3, 4), (2, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_einsum(equation, shapes, torch):
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    check_gradient(lambda *a: ops.einsum(*a, equation=equation), *arrays)
    check_agreement(
        torch,
        lambda *a: ops.einsum(*a, equation=equation),
        lambda *a: torch.einsum(equation, *a),
        *arrays,
    )


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(33, 20, seed=0), (5, 3, 33)),
    "convolution": (lambda: nn.Conv2d(19, 21, 3, 2, padding=1, seed=0), (2, 9, 8, 19)),
    "pointwise": (lambda: nn.Conv2d(19, 21, 1, seed=0), (2, 9, 8, 19)),
    "strided pointwise": (lambda: nn.Conv2d(16, 40, 1, 2, seed=0), (2, 9, 8, 16)),
    "dilated": (lambda: nn.Conv2d(16, 34, 3, dilation=2, seed=0), (2, 9, 8, 16)),
    "lstm": (lambda: nn.LSTM(18, 17, seed=0), (7, 4, 18)),
    "gru": (lambda: nn.GRU(18, 17, seed=0), (7, 4, 18)),
    "rnn": (lambda: nn.RNN(18, 17, seed=0), (7, 4, 18)),
    "many": (lambda: nn.LSTM(40, 64, seed=0), (37, 3, 40)),
    "attention": (lambda: nn.MultiHeadAttention(80, 2, seed=0), (2, 300, 80)),
}


def passed(make: Callable[[], nn.Module], x: np.ndarray, precision: str) -> list[np.ndarray]:
    """Return a layer's result, and the gradients to its input and its parameters."""
    layer, tensor = make(), Tensor(x, requires_grad=True)
    with computing_in(precision):
        y: Any = layer(tensor)
    y = y[0] if isinstance(y, tuple) else y
    y.backward(np.random.default_rng(1).standard_normal(y.shape, np.float32))  # outside
    return [y.data, tensor.grad, layer.flat_grad]


#: Kernels that take long to compile.
LONG = "attention", "gru", "lstm", "rnn", "strided pointwise", "dilated", "many"
NAMES = [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in LAYERS]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["bf16-pairs", "bf16-tiles"])
@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_is_near_float32_and_not_the_same(name: str, order: str) -> None:
    make, shape = LAYERS[name]
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    for rounded, exact in zip(*(passed(make, x, p) for p in (order, "float32")), strict=True):
        assert (rounded != exact).any()
        assert np.abs(rounded - exact).max() < 0.02 * np.abs(exact).max()


def test_small_and_winograd_layers_stay_float32() -> None:
    rng = np.random.default_rng(0)
    for make, shape in (
        (lambda: nn.Linear(40, 15, seed=0), (5, 40)),
        (lambda: nn.Conv2d(3, 20, 3, 2, seed=0), (2, 9, 8, 3)),
        (lambda: nn.Conv2d(16, 16, 3, padding=1, seed=0), (2, 9, 8, 16)),  # Winograd's
    ):
        x = rng.standard_normal(shape, np.float32)
        for actual, expected in zip(
            *(passed(make, x, p) for p in ("bf16-pairs", "float32")), strict=True
        ):
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.slow
@pytest.mark.skipif(not permitted(), reason="this processor has no AMX")
@pytest.mark.parametrize("name", NAMES)
def test_tiles_have_the_same_bits_by_amx_and_without(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, shape = LAYERS[name]
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    pairs = passed(make, x, "bf16-pairs")
    tiles = passed(make, x, "bf16-tiles")
    assert any((one != other).any() for one, other in zip(pairs, tiles, strict=True))
    for module in (attention, gradient, packed, product):
        monkeypatch.setattr(module, "usable", lambda: False)
    for one, other in zip(tiles, passed(make, x, "bf16-tiles"), strict=True):
        np.testing.assert_array_equal(one, other)
