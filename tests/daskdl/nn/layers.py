"""check_layer: everything that any layer has to keep, in one call."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.tensor import no_grad
from tests.daskdl.gradients import as_tuple, check_gradient, normal


def check_layer(
    make: Callable[[], nn.Module],
    input_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
    folder: Any,
    *,
    parameters: int = 0,
    wrong_shape: tuple[int, ...] | None = None,
    sentence: str = "",
) -> None:
    """Check a layer by what it promises.

    Parameters
    ----------
    make
        Makes the layer, with the same weights each time.
    input_shape, output_shape
        Of one call; the first result counts where there are several.
    folder : Path
        Where a model file may be written.
    parameters : int
        Their number.
    wrong_shape, sentence
        An input that has to be refused, and a pattern of what is said.
    """
    layer = make()
    x = normal(*input_shape).astype(np.float32)
    x += np.sign(x).astype(np.float32) * np.float32(1e-3)  # away from kinks at 0
    kept = x.copy()
    result = run(layer, x)
    assert result[0].shape == output_shape
    assert {part.dtype for part in result} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(x, kept)
    assert layer.flat.dtype == np.float32
    assert layer.flat.size == sum(p.data.size for p in layer.parameters()) == parameters

    same(result, run(layer, x))  # the same call, the same bits
    same(result, run(make(), x))  # the same seed, the same weights
    same(result, run(layer.eval(), x))
    same(result, run(pickle.loads(pickle.dumps(layer)), x))
    same(result, run(copy.deepcopy(layer), x))

    stranger = make()
    stranger.load_flat(layer.flat + 1)
    assert not parameters or (result[0] != run(stranger, x)[0]).any()
    stranger.load_state_dict(layer.state_dict())
    same(result, run(stranger, x))

    path = folder / "layer.safetensors"
    nn.save(layer, path)
    loaded = nn.load(path)
    assert type(loaded) is type(layer)
    assert repr(loaded) == repr(layer)
    same(result, run(loaded, x))

    check_layer_gradient(layer, x)
    if wrong_shape is not None:
        with pytest.raises(ShapeError, match=sentence) as refused:
            layer(np.zeros(wrong_shape, np.float32))
        assert type(layer).__name__ in str(refused.value)
        assert "found" in str(refused.value)


def check_layer_gradient(layer: nn.Module, x: np.ndarray) -> None:
    """Check the gradient to the input and to all parameters, in float64."""
    layer = copy.deepcopy(layer)
    names = [name for name, _ in layer.named_parameters()]
    owners = dict(layer.modules())

    def call(x: Any, *parameters: Any) -> Any:
        for name, parameter in zip(names, parameters, strict=True):
            owner, _, attribute = name.rpartition(".")
            owners[owner].__dict__[attribute] = parameter
        return layer(x)

    values = [p.data.astype(np.float64) for p in layer.parameters()]
    check_gradient(call, x.astype(np.float64), *values)


def run(layer: nn.Module, x: np.ndarray) -> list[np.ndarray]:
    """Return all results as arrays."""
    with no_grad():
        return [tensor.data for tensor in as_tuple(layer(x))]


def same(first: list[np.ndarray], second: list[np.ndarray]) -> None:
    """Assert that two results are the same bits."""
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
