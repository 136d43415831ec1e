"""Containers that run modules in order or side by side."""

from __future__ import annotations

from typing import Any, Self

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.module import Module
from daskdl.tensor import Tensor

__all__ = [
    "Branches",
    "Concat",
    "Identity",
    "Map",
    "Parallel",
    "Residual",
    "Sequential",
]


class Sequential(Module, pure=True):
    """Passes each layer's result to the next layer.

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
        """Append a layer; return the model, so that calls can be chained.

        Examples
        --------
        >>> from daskdl.nn import Linear, ReLU, Sequential
        >>> len(Sequential().add(Linear(3, 8)).add(ReLU()))
        2
        """
        _check("Sequential.add", layer)
        self.layers.append(layer)
        # A model file rebuilds the model from these arguments.
        self.__dict__["_arguments"] = (tuple(self.layers), {})
        return self

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Apply all layers; the first one gets all inputs."""
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


class Identity(Module, pure=True):
    """Returns its input.

    Examples
    --------
    >>> nn.Identity()(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    def forward(self, x: Any) -> Any:
        """Return x."""
        return x


class Branches(Module, pure=True):
    """Applies each layer to the input: x -> (a(x), b(x), ...)."""

    def __init__(self, *layers: Module) -> None:
        self.layers = list(layers)

    def forward(self, x: Any) -> tuple[Any, ...]:
        """Apply all layers to x."""
        return tuple(layer(x) for layer in self.layers)


class Concat(Module, pure=True):
    """Applies each layer to the input and joins the results, as an Inception module does.

    Parameters
    ----------
    *layers : Module
    axis : int
        Axis to join along, by default the channels.
    """

    def __init__(self, *layers: Module, axis: int = -1) -> None:
        self.layers, self.axis = list(layers), axis

    def forward(self, x: Any) -> Tensor:
        """Apply all layers to x and join."""
        results = [layer(x) for layer in self.layers]
        shapes = [list(result.shape) for result in results]
        for shape in shapes:
            shape[self.axis] = 0
        if any(shape != shapes[0] for shape in shapes):
            raise ShapeError(
                f"Concat: expected results that differ in axis {self.axis} alone, found "
                f"{', '.join(str(tuple(result.shape)) for result in results)}"
                "; pad the layers so that their results have one size"
            )
        return ops.concatenate(*results, axis=self.axis)


class Parallel(Module, pure=True):
    """Applies a layer of its own to each input: (x, y, ...) -> (a(x), b(y), ...)."""

    def __init__(self, *layers: Module) -> None:
        self.layers = list(layers)

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        """Apply layer i to input i; inputs may also be one tuple."""
        values = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
        if len(values) != len(self.layers):
            raise ShapeError(
                f"Parallel: expected {len(self.layers)} inputs, one for each layer, found "
                f"{len(values)}"
                "; give a tuple with an input for each"
            )
        return tuple(layer(x) for layer, x in zip(self.layers, values, strict=True))


class Map(Module, pure=True):
    """Applies the same layer to each input: (x, y, ...) -> (a(x), a(y), ...)."""

    def __init__(self, layer: Module) -> None:
        self.layer = layer

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        """Apply the layer to all inputs; they may also be one tuple."""
        values = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
        return tuple(self.layer(x) for x in values)


class Residual(Module, pure=True):
    """Adds the input to a layer's result: layer(x) + shortcut(x) (K. He et al., arXiv 1512.03385).

    Parameters
    ----------
    layer : Module
    shortcut : Module, optional
        Brings x to the shape of the layer's result; by default x itself.
    activation : Module, optional
        Applied to the sum.
    """

    def __init__(
        self, layer: Module, shortcut: Module | None = None, activation: Module | None = None
    ) -> None:
        self.layer, self.shortcut, self.activation = layer, shortcut, activation

    def forward(self, x: Any) -> Any:
        """Apply the layer to x and add."""
        y, x = self.layer(x), x if self.shortcut is None else self.shortcut(x)
        if y.shape != x.shape:
            raise ShapeError(
                f"Residual: expected a layer and a shortcut with results of one shape, found "
                f"{tuple(y.shape)} and {tuple(x.shape)}"
                "; give a shortcut, such as a 1x1 convolution, that changes the shape alike"
            )
        y = ops.add(y, x)
        return y if self.activation is None else self.activation(y)
