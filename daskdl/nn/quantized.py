"""Layers with int8 weights, and models in which they replace float32 layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.kernels.int8.prepared import quantised
from daskdl.kernels.runtime.precision import check_precision
from daskdl.nn.conv.conv import Conv2d, Windows
from daskdl.nn.core.arguments import Sizes, check_last_axis
from daskdl.nn.core.graph import Graph
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Buffer
from daskdl.nn.core.structure import replace_module
from daskdl.nn.linear import Linear
from daskdl.ops.int8 import has_int8, packed, unpacked
from daskdl.tensor import Array, Tensor

__all__ = ["Int8Conv2d", "Int8Linear", "Quantized"]


class _Int8(Module, pure=True):
    """Base of layers with int8 weights of ``shape``, and with scale and zero of their inputs.

    Four weights are the bits of one float32, so that the model's vector and file can hold them.
    They are not trained.
    """

    shape: tuple[int, ...]

    def _hold(
        self, shape: tuple[int, ...], bias: bool, x_scale: float | None, x_zero: int
    ) -> None:  # fmt: skip
        self.shape = shape
        self.of_x = None if x_scale is None else (float(np.float32(x_scale)), int(x_zero))
        self.words = Buffer(np.zeros(-(-math.prod(shape) // 4), np.float32))
        self.scale = Buffer(np.ones(shape[0], np.float32))
        self.bias = Buffer(np.zeros(shape[0], np.float32)) if bias else None

    def take(self, weight: Array, bias: Array | None) -> Self:
        """Round float32 weights and store them."""
        numbers, scale = quantised(weight)
        self.words.data[:], self.scale.data[:] = packed(numbers), scale
        if self.bias is not None and bias is not None:
            self.bias.data[:] = bias
        return self

    @property
    def weight(self) -> Array:
        """The weights as float32 of :attr:`shape`."""
        numbers = unpacked(self.words.data, self.shape)
        factor = self.scale.data.reshape(-1, *(1,) * (len(self.shape) - 1))
        return numbers.astype(np.float32) * factor


class Int8Conv2d(Windows, _Int8, pure=True):
    """A convolution of images with int8 weights, (N, H, W, in) -> (N, rows, columns, out).

    :func:`daskdl.quantize` makes it from a :class:`~daskdl.nn.Conv2d`; the first arguments are
    the same.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, bias, dilation
        As :class:`~daskdl.nn.Conv2d`'s.
    x_scale, x_zero : float, int
        Meaning of the inputs' bytes: ``(byte - x_zero) * x_scale``.
    groups : int
        As :class:`~daskdl.nn.Conv2d`'s.
    """

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: int | Sequence[int] | str = 0,
        bias: bool = True,
        dilation: Sizes = 1,
        x_scale: float = 1.0,
        x_zero: int = 0,
        groups: int = 1,
    ) -> None:
        self._place(in_channels, kernel_size, stride, padding, dilation, groups)
        share = self._padding.share(in_channels, out_channels, groups)
        self._hold((out_channels, *self.kernel, share), bias, x_scale, x_zero)

    def forward(self, x: Any) -> Tensor:
        """Map x (N, H, W, in) to (N, rows, columns, out)."""
        check_last_axis(self, x, 4, self.in_channels)
        pad: Any = self._padding.of(x.shape[1:-1])
        steps: Any = self.stride, self.dilation
        return ops.int8_conv2d(
            x, self.words, self.scale, self.bias, shape=self.shape, of_x=self.of_x,
            stride=steps[0], pad=pad, dilation=steps[1], groups=self.groups,
        )  # fmt: skip


class Int8Linear(_Int8, pure=True):
    """``x @ weight.T + bias`` with int8 weights, (..., in) -> (..., out).

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
    x_scale, x_zero : float, int
        As :class:`Int8Conv2d`'s; without a scale each row of inputs gets its own.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        x_scale: float | None = 1.0,
        x_zero: int = 0,
    ) -> None:
        self.in_features = in_features
        self._hold((out_features, in_features), bias, x_scale, x_zero)

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        check_last_axis(self, x, None, self.in_features)
        return ops.int8_linear(
            x, self.words, self.scale, self.bias, shape=self.shape, of_x=self.of_x
        )


def int8_of(layer: Conv2d | Linear, x_scale: float | None, x_zero: int) -> Int8Conv2d | Int8Linear:
    """Return the int8 layer with the rounded weights of a float32 layer."""
    bias = layer.bias is not None
    if isinstance(layer, Linear):
        out, inner = layer.weight.shape
        made: Any = Int8Linear(inner, out, bias, x_scale, x_zero)
    else:
        arguments = layer.in_channels, len(layer.weight), layer.kernel, layer.stride
        more: Any = layer.dilation, x_scale, x_zero, layer.groups
        made = Int8Conv2d(*arguments, _padding_of(layer), bias, *more)
    return made.take(layer.weight.data, layer.bias.data if layer.bias is not None else None)


def _padding_of(layer: Conv2d) -> Any:
    padding = layer._padding
    return padding.fixed if padding.mode == "fixed" else padding.mode


class Quantized(Module, pure=True):
    """A model in which int8 layers replace some layers.

    :func:`daskdl.quantize` makes it. It predicts, and is not trained.

    Parameters
    ----------
    model : Module
        Model whose layers are replaced.
    layers : sequence of (name, x_scale, x_zero)
        Dotted names of layers inside of the model, and the meaning of their inputs' bytes, see
        :class:`Int8Conv2d`.
    rows : sequence of (name, whether in int8, low, high, share, why not)
        Rows of :attr:`table`.

    Raises
    ------
    SettingsError
        When a layer does not exist, or has no int8 counterpart.
    """

    def __init__(
        self,
        model: Module,
        layers: Sequence[tuple[str, float | None, int]],
        rows: Sequence[Sequence[Any]] = (),
    ) -> None:
        self.model, self.rows = model, rows
        for name, x_scale, x_zero in layers:
            modules = dict(self.model.modules())
            module = modules.get(name)
            if module is None or not takes_int8(module):
                raise SettingsError(
                    f"Quantized: expected layers with an int8 counterpart, found {name!r}, "
                    f"{type(module).__name__}; name a Conv2d, whose groups are depthwise or have a "
                    "multiple of 4 channels, or a Linear"
                )
            made = int8_of(cast(Any, module), x_scale, x_zero)
            for other in [n for n, m in modules.items() if m is module]:
                self.model = replace_module(self.model, other, made)
            # The replaced layer may stay as an argument of the model, in its file and its copies.
            for attribute in ("weight", "bias"):
                vars(module).pop(attribute)

    def forward(self, *inputs: Any) -> Any:
        """Return the model's results."""
        return self.model(*inputs)

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(self, name: str) -> Any:
            """Return an attribute of the model, such as a method of its class."""
            if name[0] != "_" and "model" in vars(self):
                return getattr(self.model, name)
            return super().__getattr__(name)

    @property
    def table(self) -> str:
        """Each layer's range, and the change of results if only this layer is int8, as text."""
        lines = [("layer", "in int8", "range of inputs", "change", "")]
        for name, taken, low, high, share, why in self.rows:
            change = "" if share < 0 else f"{100 * share**0.5:.2f} %"
            lines.append((name, "yes" if taken else "no", f"{low:.3g} to {high:.3g}", change, why))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(n) for cell, n in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def float_precision(where: str, model: Module, precision: str) -> str:
    """Return the precision of a model's float32 layers; for "int8" it is float32."""
    if precision != "int8":
        check_precision(where, precision)
        return precision
    modules = [module for _, module in model.modules()]
    if not any(isinstance(m, Quantized) or (isinstance(m, Graph) and m.in_int8) for m in modules):
        raise SettingsError(
            f"{where}, precision: expected for int8 a model of daskdl.quantize, or an ONNX file of "
            f"int8, found {type(model).__name__}; make one by daskdl.quantize(model, samples)"
        )
    return "float32"


def takes_int8(module: Any) -> bool:
    """Return whether a layer has an int8 counterpart."""
    if type(module) not in (Conv2d, Linear):
        return False
    return has_int8(module.weight.shape, getattr(module, "groups", 1))
