"""A node of TensorFlow: its inputs and settings, and the nodes that it adds to the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.interop.building import LastBuilder, Table, Value
from daskdl.interop.layer import Layer as Base
from daskdl.interop.tensorflow.graphdef import NodeDef
from daskdl.nn.core.nodes import FEW
from daskdl.tensor import Array

#: A result, or an array in the file.
Operand = Value | Array


class Net:
    """The graph while it is built; ``uses`` counts the readers of a result by its file name."""

    def __init__(self) -> None:
        self.build = LastBuilder()
        self.uses: dict[str, int] = {}
        self._weights: dict[tuple[int, str], tuple[Array, str]] = {}

    def added(self, array: Array, name: str, change: Callable[[Array], Array] | None = None) -> str:
        """Add weights to the graph once; return their name. ``change`` converts filters."""
        key = id(array), "" if change is None else change.__name__
        if key not in self._weights:
            floats = array.astype(np.float32, copy=False)
            if change is None:
                added = self.build.parameter(name, floats)
            else:
                added = self.build.filters(name, change(floats))
            self._weights[key] = array, added
        return self._weights[key][1]

    def value(self, operand: Operand, name: str) -> Value:
        """Return a result; an array becomes weights, or a constant if small or of integers."""
        if isinstance(operand, Value):
            return operand
        if operand.dtype.kind == "f" and operand.size > FEW:
            return Value(self.added(operand, name), operand.ndim)
        # Floats become float32, and integers int64, the dtype of shapes and places in graphs.
        dtype = {"f": "float32", "i": "int64"}.get(operand.dtype.kind, operand.dtype.name)
        return Value(self.build.constant(operand, dtype), operand.ndim)


class Call(Base):
    """One node of the file, with its inputs in order."""

    def __init__(self, net: Net, node: NodeDef, operands: list[Operand], names: list[str]) -> None:
        super().__init__(node.place, node.name, node.operator, net.build, [], node, {})
        self.net, self.node, self.operands, self.names = net, node, operands, names

    @property
    def x(self) -> Value:
        """The first input, as a result."""
        return self.value(0)

    def value(self, i: int) -> Value:
        """Return an input as a result."""
        return self.net.value(self._input(i), self.names[i])

    def unpermuted(self, i: int = 0) -> Value:
        """Return an input in the file's layout."""
        return self.build.last(self.value(i))

    def weights(self, i: int, role: str, change: Callable[[Array], Array] | None = None) -> str:
        """Add an input that is an array of the file to the weights; return its name."""
        return self.net.added(self.array(i, role), self.names[i], change)

    def shaped(self, operator: str, *inputs: str, rank: int | None, **attributes: Any) -> Value:
        """Add the call's last node; return its result, with its number of axes if known."""
        return Value(self.build.node(operator, *inputs, name=self.name, **attributes), rank)

    def array(self, i: int, role: str) -> Array:
        """Return an input that must be an array of the file."""
        array = self._input(i)
        if isinstance(array, Value):
            self.fail(f"expected {role} as a constant, found what {self.names[i]!r} computes")
        return array

    def integers(self, i: int, role: str) -> tuple[int, ...]:
        """Return an input that must be integers of the file, or a single one."""
        array = self.array(i, role)
        if array.dtype.kind not in "iu" or array.size > 64:
            self.fail(f"expected integers as {role}, found {array.dtype} of {array.shape}")
        return tuple(int(n) for n in array.reshape(-1))

    def is_array(self, i: int) -> bool:
        """Whether an input is an array of the file."""
        return i < len(self.operands) and not isinstance(self.operands[i], Value)

    def _input(self, i: int) -> Operand:
        if i >= len(self.operands):
            self.fail(f"expected {i + 1} inputs, found {len(self.operands)}")
        return self.operands[i]

    def first_of(self, role: str) -> bool:
        """Whether images have their channels second; TensorFlow has them last by default."""
        data_format = self.setting("data_format", "NHWC")
        if data_format not in ("NHWC", "NCHW"):
            self.fail(f"expected {role} of NHWC or NCHW, found {data_format}")
        return data_format == "NCHW"

    def image(self, i: int) -> Value:
        """Return an input (N, H, W, C) or (N, C, H, W) with its channels second."""
        value = self.value(i)
        if not self.first_of("images"):
            return self.build.second(value)
        return self.build.last(value)._replace(second=True)

    def done(self, value: Value) -> Value:
        """Return a result of images in the node's layout."""
        return value._replace(second=False) if self.first_of("images") else value

    def pair(self, name: str) -> tuple[int, int]:
        """Return the rows and columns of a setting for all four axes."""
        numbers = self.setting(name, (1, 1, 1, 1))
        rows, columns = (2, 3) if self.first_of("images") else (1, 2)
        if len(numbers) != 4 or any(
            n != 1 for i, n in enumerate(numbers) if i not in (rows, columns)
        ):
            self.fail(f"{name}: expected four numbers, 1 for samples and channels, {numbers}")
        if not (1 <= numbers[rows] <= 4096 and 1 <= numbers[columns] <= 4096):
            self.fail(f"{name}: expected numbers from 1 to 4096, found {numbers}")
        return numbers[rows], numbers[columns]

    def padding(self) -> Any:
        """Return "SAME", "VALID", or widths (above, left, below, right)."""
        padding = self.setting("padding", "VALID")
        if padding in ("SAME", "VALID"):
            return padding
        widths = self.setting("explicit_paddings", ())
        if padding != "EXPLICIT" or len(widths) != 8 or not all(0 <= n <= 4096 for n in widths):
            self.fail(f"padding: expected SAME, VALID or EXPLICIT widths, found {padding}")
        first = 4 if self.first_of("images") else 2
        above, below, left, right = widths[first : first + 4]
        return above, left, below, right


#: Functions that add the nodes of a Call, and return its result or a list of results.
TABLE = Table()
#: Decorator that registers such a function for its operators.
operator = TABLE.of
