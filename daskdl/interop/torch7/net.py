"""One module of Torch7 while its nodes are made, and the table of modules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from daskdl.interop.building import Builder, Table, Value
from daskdl.interop.layer import Layer
from daskdl.interop.torch7.reader import Object
from daskdl.tensor import Array

#: Largest depth of nested modules, and number of modules in a network.
_DEEPEST, _MOST = 60, 20_000
#: Packages whose modules equal the modules of nn.
_SAME = ("cudnn.", "ccn2.", "inn.")


#: Input or output of a module: a result, or a table of them.
Activity = Value | list[Any]


class Module(Layer):
    """One module: ``kind`` is its class without ``nn.`` or ``cudnn.``.

    ``path`` is its place in the network, such as "0.3".
    """

    def __init__(
        self, source: Object, build: Builder, where: str, path: str = "", depth: int = 0,
        weights: dict[int, str] | None = None,
    ) -> None:  # fmt: skip
        kind = source.kind
        for package in _SAME:
            kind = kind.replace(package, "nn.", 1) if kind.startswith(package) else kind
        kind = kind.removeprefix("nn.")
        super().__init__(
            f"{where}: module {path!r}, {kind}", f"{path or 'y'}/{kind}", kind, build, [],
            source.fields, {} if weights is None else weights,
        )  # fmt: skip
        self.where, self.path, self.depth = where, path, depth
        self.input: Activity = []
        if depth > _DEEPEST:
            self.fail(f"modules lie in each other deeper than {_DEEPEST} times")

    def children(self) -> list[Module]:
        """Return the child modules in order."""
        listed = self.settings.get("modules")
        if listed is None:
            return []
        if not isinstance(listed, dict):
            self.fail("expected a table of modules")
        modules = []
        for i in range(len(listed)):
            child = listed.get(i + 1)
            if not isinstance(child, Object):
                self.fail(f"expected {len(listed)} modules, found none at {i + 1}")
            path = f"{self.path}.{i}" if self.path else str(i)
            modules.append(Module(child, self.build, self.where, path, self.depth + 1, self.shared))
        return modules

    def walk(self) -> Iterator[Module]:
        """Yield this module and all its descendants, parents first."""
        waiting, count = [self], 0
        while waiting:
            module = waiting.pop()
            count += 1
            if count > _MOST:
                self.fail(f"expected up to {_MOST} modules, found more")
            yield module
            waiting += module.children()[::-1]

    def input_shape(self) -> tuple[int | None, ...] | None:
        """Return the input shape of the first module with weights; None if it is unknown."""
        for module in self.walk():
            fields = module.settings
            if "Convolution" in module.kind and isinstance(fields.get("nInputPlane"), int):
                return (None, fields["nInputPlane"], None, None)
            if module.kind == "Linear" and isinstance(fields.get("weight"), np.ndarray):
                return (None, int(fields["weight"].shape[-1]))
            if module.kind in ("View", "Reshape", "Transpose", "Squeeze", "JoinTable"):
                return None
        return None

    def run(self, value: Activity) -> Activity:
        """Add the module's nodes for an input; return its result."""
        self.input = value
        result: Activity = TABLE[self.kind](self)
        return result

    @property
    def x(self) -> Value:
        """The module's input; it must be a single value."""
        return self.one(self.input)

    def one(self, value: Activity) -> Value:
        """Return a value; a ModelFileError for a table."""
        if not isinstance(value, Value):
            self.fail("expected one value, found a table")
        return value

    def several(self) -> list[Any]:
        """Return the values of the module's input, which must be a table."""
        if isinstance(self.input, Value) or not self.input:
            self.fail("expected a table of values, found one")
        return self.input

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a field; nil counts as missing."""
        value = self.settings.get(name)
        return default if value is None else value

    def lua_axis(self, axis: int, dims: str = "", value: Value | None = None) -> int:
        """Return an axis of Lua, from 1, as ours, from 0.

        The field ``dims`` is the number of axes of a single sample; ``value`` is by default the
        module's input.
        """
        rank = self.rank_of(value or self.x)
        inner = self.setting(dims) if dims else None
        axis = axis + rank + 1 if axis < 0 else axis
        axis += rank - inner if isinstance(inner, int) and inner and rank > inner else 0
        if not 1 <= axis <= rank:
            self.fail(f"expected an axis of {rank}, found {axis}")
        return axis - 1

    def has(self, name: str) -> bool:
        """Whether a field is a tensor with at least one number."""
        return self.array(name) is not None

    def array(self, name: str) -> Array | None:
        """Return a field that is a tensor; None if it is missing or empty."""
        array = self.settings.get(name)
        if array is None or (isinstance(array, np.ndarray) and not array.size):
            return None
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            self.fail(f"{name}: expected a tensor of floats")
        return array.astype(np.float32, copy=False)

    def needed(self, name: str, shape: tuple[int, ...] | None = None) -> Array:
        """Return a field that must be a tensor, reshaped to ``shape`` if given."""
        array = self.array(name)
        if array is None:
            self.fail(f"expected a tensor {name}")
        if shape is not None:
            if array.size != math.prod(shape):
                self.fail(f"{name}: expected {shape}, found {array.shape}")
            array = array.reshape(shape)
        return array

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an intermediate node, also under the module's name; return its result's name."""
        return self.result(operator, *inputs, **attributes).name

    def weight(
        self, name: str, array: Array, add: Callable[[str, Array], str] | None = None
    ) -> str:
        """Add a tensor to the graph, once if modules share it; return its name."""
        path = f"{self.path}.{name}" if self.path else name
        return self.added(id(self.settings.get(name)), path, array, add)

    def bias(self, count: int) -> str:
        """Add the bias; return its name, "" if the module has none."""
        return self.weight("bias", self.needed("bias", (count,))) if self.has("bias") else ""


TABLE = Table()
#: Decorator that registers the function for a module's classes.
module = TABLE.of
