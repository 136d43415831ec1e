"""Layers one after the other."""

from __future__ import annotations

from typing import Any, Self

from daskdl.errors import SettingsError
from daskdl.nn.module import Module

__all__ = ["Sequential"]


class Sequential(Module):
    """Feed each layer's result to the next.

    Examples
    --------
    >>> import numpy as np
    >>> from daskdl.nn import Linear, ReLU, Sequential
    >>> model = Sequential(Linear(3, 8), ReLU(), Linear(8, 1))
    >>> model(np.zeros((5, 3), np.float32)).shape
    (5, 1)
    """

    def __init__(self, *layers: Module) -> None:
        for layer in layers:
            _check("Sequential", layer)
        self.layers = list(layers)

    def add(self, layer: Module) -> Self:
        """Put a layer behind the last and return the model, so that calls can be chained.

        Examples
        --------
        >>> from daskdl.nn import Linear, ReLU, Sequential
        >>> len(Sequential().add(Linear(3, 8)).add(ReLU()))
        2
        """
        _check("Sequential.add", layer)
        self.layers.append(layer)
        # What a model file rebuilds it from.
        self.__dict__["_arguments"] = (tuple(self.layers), {})
        return self

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Apply all layers, the first to all inputs."""
        if not self.layers:
            return inputs[0]
        x = self.layers[0](*inputs, **named)
        for layer in self.layers[1:]:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, index: int) -> Module:
        return self.layers[index]


def _check(where: str, layer: Any) -> None:
    if not isinstance(layer, Module):
        raise SettingsError(
            f"{where}: expected a Module, found {layer!r}"
            "; wrap a function in a Module with a forward"
        )
