"""Operations in bfloat16: near float32 in results and gradients, which keep to the precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from daskdl import nn
from daskdl.kernels.runtime.precision import computing_in
from daskdl.tensor import Tensor

LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(33, 20, seed=0), (5, 3, 33)),
    "convolution": (lambda: nn.Conv2d(19, 21, 3, 2, padding=1, seed=0), (2, 9, 8, 19)),
    "pointwise": (lambda: nn.Conv2d(19, 21, 1, seed=0), (2, 9, 8, 19)),
    "strided pointwise": (lambda: nn.Conv2d(16, 40, 1, 2, seed=0), (2, 9, 8, 16)),
    "dilated": (lambda: nn.Conv2d(16, 34, 3, dilation=2, seed=0), (2, 9, 8, 16)),
    "lstm": (lambda: nn.LSTM(18, 17, seed=0), (7, 4, 18)),
    "gru": (lambda: nn.GRU(18, 17, seed=0), (7, 4, 18)),
    "rnn": (lambda: nn.RNN(18, 17, seed=0), (7, 4, 18)),
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
LONG = "gru", "rnn"


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long if n in LONG else ()) for n in LAYERS]
)
def test_near_float32_and_not_the_same(name: str) -> None:
    make, shape = LAYERS[name]
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    for rounded, exact in zip(*(passed(make, x, p) for p in ("bf16", "float32")), strict=True):
        assert (rounded != exact).any()
        assert np.abs(rounded - exact).max() < 0.02 * np.abs(exact).max()


def test_few_numbers_and_float64_are_as_ever() -> None:
    rng = np.random.default_rng(0)
    for make, shape in (
        (lambda: nn.Linear(40, 15, seed=0), (5, 40)),
        (lambda: nn.Conv2d(3, 20, 3, 2, seed=0), (2, 9, 8, 3)),
        (lambda: nn.Conv2d(16, 16, 3, padding=1, seed=0), (2, 9, 8, 16)),  # Winograd's
    ):
        x = rng.standard_normal(shape, np.float32)
        for found, expected in zip(*(passed(make, x, p) for p in ("bf16", "float32")), strict=True):
            np.testing.assert_array_equal(found, expected)
