"""Rules for sequences: recurrent layers with weights that are prepared once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from daskdl import ops
from daskdl.kernels.convolution import conv2d
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.products.affine import Affine
from daskdl.kernels.products.packed import packed
from daskdl.kernels.products.precise import in_bfloat16
from daskdl.nn.inference.passes import Pass, array_of, result_of, rule
from daskdl.nn.inference.prepared import Prepared
from daskdl.ops.convlstm import compute as convlstms
from daskdl.ops.lstm import compute as lstms
from daskdl.tensor import Array, Tensor


@rule(ops.lstm)
def lstm(
    run: Pass, x: Any, h: Any, c: Any, weight_input: Any, weight_state: Any, bias: Any = None,
    peepholes: Any = None, **settings: Any,
) -> Any:  # fmt: skip
    """Run an LSTM whose products with its inputs have the same bits in any batch."""
    matrix = array_of(weight_input)
    key = run.prepared.key(matrix)
    if (
        key is None
        or matrix.ndim != 2
        or x.dtype != matrix.dtype
        or x.shape[-1:] != matrix.shape[1:]
    ):
        return None

    def product(rows: Array, weight: Array) -> Array:
        found: Affine = run.prepared.get(("affine", key), lambda: Affine(weight))
        return found(rows)

    state = array_of(weight_state)
    own, half = run.prepared.key(state), in_bfloat16(matrix, state)
    panels = None if own is None else run.prepared.get(("lstm", own), lambda: packed(state.T, half))
    function = partial(lstms, product, panels=panels)
    values = x, h, c, weight_input, weight_state, bias, peepholes
    arrays = [value.data if isinstance(value, Tensor) else value for value in values]
    return tuple(map(Tensor, run.call(result_of, function, *arrays, **settings)))


@rule(ops.convlstm)
def convlstm(
    run: Pass, x: Any, h: Any, c: Any, weight_input: Any, weight_state: Any, bias: Any,
    **settings: Any,
) -> Any:  # fmt: skip
    """Run a ConvLSTM with weights that are transformed once."""
    keys = [w is None or run.prepared.key(array_of(w)) for w in (weight_input, weight_state)]
    if None in keys:
        return None
    values = x, h, c, weight_input, weight_state, bias
    arrays = [value.data if isinstance(value, Tensor) else value for value in values]
    function = partial(convlstms, _Convolutions(run.prepared))
    return tuple(map(Tensor, run.call(result_of, function, *arrays, **settings)))


class _Convolutions:
    """Convolutions with a model's own weights, transformed once."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def forward(self, x: Array, weight: Array, geometry: Geometry) -> Array:
        """Convolve images."""
        columns = geometry.size(*x.shape[1:3])[1]
        key = self._prepared.key(weight), geometry, columns, None
        made = self._prepared.get(key, lambda: Convolution(weight, None, geometry, columns))
        y: Array = made(x)
        return y

    def prepared(self, weight: Array, geometry: Geometry) -> Callable[[Array, Array], Array]:
        """Return what adds the convolution of images to an array."""
        key = "adding", self._prepared.key(weight), geometry
        found: Callable[[Array, Array], Array] = self._prepared.get(
            key, lambda: conv2d.prepared(weight, geometry)
        )
        return found
