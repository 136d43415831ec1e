"""A call of a module of Torch7, which adds nodes of ours, and the table of modules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.building import Builder, Table, Value
from daskdl.interop.torch7.reader import Object
from daskdl.tensor import Array

#: Modules in each other, and modules of a network, at most.
_DEEPEST, _MOST = 60, 20_000
#: Packages whose modules are those of nn.
_SAME = ("cudnn.", "ccn2.", "inn.")


#: What goes from module to module: a result, or a table of them.
Given = Value | list[Any]


class Module:
    """One module.

    Attributes
    ----------
    kind : str
        Its class, without ``nn.`` or ``cudnn.``.
    path : str
        Where it is in the network, such as "0.3".
    build : Builder
    """

    def __init__(
        self, held: Object, build: Builder, where: str, path: str = "", depth: int = 0,
        weights: dict[int, str] | None = None,
    ) -> None:  # fmt: skip
        self.held, self.build, self.where, self.path, self.depth = held, build, where, path, depth
        self.weights = {} if weights is None else weights
        kind = held.kind
        for package in _SAME:
            kind = kind.replace(package, "nn.", 1) if kind.startswith(package) else kind
        self.kind = kind.removeprefix("nn.")
        if depth > _DEEPEST:
            self.fail(f"modules lie in each other deeper than {_DEEPEST} times")

    def fail(self, sentence: str) -> NoReturn:
        """Raise a ModelFileError that names the module."""
        raise ModelFileError(f"{self.where}: module {self.path!r}, {self.kind}: {sentence}")

    def children(self) -> list[Module]:
        """Return the modules inside, in their order."""
        listed = self.held.fields.get("modules")
        if listed is None:
            return []
        if not isinstance(listed, dict):
            self.fail("expected a table of modules")
        found = []
        for i in range(len(listed)):
            child = listed.get(i + 1)
            if not isinstance(child, Object):
                self.fail(f"expected {len(listed)} modules, found none at {i + 1}")
            path = f"{self.path}.{i}" if self.path else str(i)
            found.append(Module(child, self.build, self.where, path, self.depth + 1, self.weights))
        return found

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Yield (kind, path) of this module and all inside it."""
        waiting, count = [self], 0
        while waiting:
            module = waiting.pop()
            count += 1
            if count > _MOST:
                self.fail(f"expected up to {_MOST} modules, found more")
            yield module.kind, module.path
            waiting += module.children()[::-1]

    def input_shape(self) -> tuple[int | None, ...] | None:
        """Return the shape that the first module with weights takes, None if none says it."""
        waiting, count = [self], 0
        while waiting and count < _MOST:
            module = waiting.pop()
            count += 1
            fields = module.held.fields
            if "Convolution" in module.kind and isinstance(fields.get("nInputPlane"), int):
                return (None, fields["nInputPlane"], None, None)
            if module.kind == "Linear" and isinstance(fields.get("weight"), np.ndarray):
                return (None, int(fields["weight"].shape[-1]))
            if module.kind in ("View", "Reshape", "Transpose", "Squeeze", "JoinTable"):
                return None
            waiting += module.children()[::-1]
        return None

    def result(self, value: Given) -> Given:
        """Add what the module does; return its result."""
        found: Given = TABLE[self.kind](self, value)
        return found

    def one(self, value: Given) -> Value:
        """Return the value if it is one, and no table."""
        if not isinstance(value, Value):
            self.fail("expected one value, found a table")
        return value

    def several(self, value: Given) -> list[Any]:
        """Return the value if it is a table."""
        if isinstance(value, Value) or not value:
            self.fail("expected a table of values, found one")
        return value

    def integer(self, name: str, default: int | None = None, least: int = 0) -> int:
        """Return a field that is a whole number."""
        found = self.held.fields.get(name, default)
        found = default if found is None else found
        if type(found) is not int or not least <= found <= 1 << 20:
            self.fail(f"{name}: expected a whole number from {least}, found {str(found)[:60]}")
        return found

    def number(self, name: str, default: float | None = None) -> float:
        """Return a field that is a number."""
        found = self.held.fields.get(name)
        found = default if found is None else found
        if isinstance(found, (int, float)) and math.isfinite(found):
            return float(found)
        self.fail(f"{name}: expected a number, found {str(found)[:60]}")

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a field that is a bool."""
        found = self.held.fields.get(name)
        return default if found is None else bool(found)

    def array(self, name: str) -> Array | None:
        """Return a field that is a tensor, None if it is not there."""
        found = self.held.fields.get(name)
        if found is None or (isinstance(found, np.ndarray) and not found.size):
            return None
        if not isinstance(found, np.ndarray) or found.dtype.kind != "f":
            self.fail(f"{name}: expected a tensor of floats")
        return found.astype(np.float32, copy=False)

    def needed(self, name: str, shape: tuple[int, ...] | None = None) -> Array:
        """Return a field that is a tensor, of a shape if one is given."""
        found = self.array(name)
        if found is None:
            self.fail(f"expected a tensor {name}")
        if shape is not None:
            if found.size != math.prod(shape):
                self.fail(f"{name}: expected {shape}, found {found.shape}")
            found = found.reshape(shape)
        return found

    def weight(
        self, name: str, array: Array, add: Callable[[str, Array], str] | None = None
    ) -> str:
        """Add a tensor to the graph; one that modules have in common, once."""
        key = id(self.held.fields.get(name))
        if key not in self.weights:
            path = f"{self.path}.{name}" if self.path else name
            self.weights[key] = (add or self.build.parameter)(path, array)
        return self.weights[key]

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its result."""
        name = f"{self.path or 'y'}/{self.kind}"
        return self.build.node(operator, *inputs, name=name, **attributes)

    def made(self, like: Value, operator: str, *inputs: str, **attributes: Any) -> Value:
        """Add a node whose result has the axes of another value."""
        return like._replace(name=self.add(operator, *inputs, **attributes))


TABLE = Table()
#: Decorator of a function that adds what a module does: puts it into the table, for its classes.
module = TABLE.of
