"""Quantized: a model some of whose layers have int8 weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from daskdl.errors import SettingsError
from daskdl.kernels.runtime.precision import check_precision
from daskdl.nn.conv.conv import Conv2d
from daskdl.nn.core.graph import Graph
from daskdl.nn.core.module import Module
from daskdl.nn.linear import Linear
from daskdl.nn.quantized.layers import int8_of
from daskdl.ops.int8 import has_int8

__all__ = ["Quantized"]


class Quantized(Module, pure=True):
    """A model in which int8 layers stand in place of some of its own.

    :func:`daskdl.quantize` makes it. It predicts, and is not trained.

    Parameters
    ----------
    model : Module
        Whose layers are replaced.
    layers : sequence of (name, x_scale, x_zero)
        The dotted names of layers inside of the model, and what the bytes of their inputs stand
        for, see :class:`Int8Conv2d`.
    rows : sequence of (name, whether in int8, low, high, share, why not)
        What :attr:`table` says.

    Raises
    ------
    SettingsError
        When there is no such layer, or it is not one that has an int8 counterpart.
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
                self.model = made if not other else _with(self.model, other, made)
            # Who is replaced may be an argument of the model, of which a file is made, and copies.
            for attribute in ("weight", "bias"):
                vars(module).pop(attribute)

    def forward(self, *inputs: Any) -> Any:
        """Return the model's results."""
        return self.model(*inputs)

    if not TYPE_CHECKING:  # for which it would stand for all names

        def __getattr__(self, name: str) -> Any:
            """Return an attribute of the model, such as a method beside those of a module."""
            if name[0] != "_" and "model" in vars(self):
                return getattr(self.model, name)
            return super().__getattr__(name)

    @property
    def table(self) -> str:
        """Text: each layer's range, and the change of results where it alone is int8."""
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
    """Return the precision of a model's float32 layers; of "int8", which has others, float32.

    Raises
    ------
    SettingsError
        When there is no such precision, or the model has no int8 layers that are asked for.
    """
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


def _with(model: Module, name: str, made: Module) -> Module:
    """Put a module in the place of another, whose dotted name this is; return the model."""
    *path, last = name.split(".")
    owner: Any = model
    for part in path:
        owner = owner[int(part)] if isinstance(owner, (list, tuple)) else getattr(owner, part)
    if isinstance(owner, (list, tuple)):
        items = list(owner)
        items[int(last)] = made
        whole: Any = type(owner)(items)
        parent: Any = model
        for part in path[:-1]:
            parent = (
                parent[int(part)] if isinstance(parent, (list, tuple)) else getattr(parent, part)
            )
        setattr(parent, path[-1], whole)
    else:
        setattr(owner, last, made)
    return model
