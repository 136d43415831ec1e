"""One layer of a file while its nodes are made, and translations that formats share."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NoReturn

from daskdl.errors import ModelFileError
from daskdl.interop.building import Value, by_channel
from daskdl.tensor import Array

#: Largest accepted kernel, stride or number of units.
_LARGEST = 1 << 20


class Layer:
    """One layer; each format's reader adds how to look up its inputs and weights.

    ``place`` is the file and the layer, for errors, ``output`` the name of the result in the graph.
    ``shared`` has the names of weights that were added, for layers that share them.
    """

    def __init__(
        self, place: str, name: str, kind: str, build: Any, inputs: list[Value],
        settings: Any, shared: dict[Any, str],
    ) -> None:  # fmt: skip
        self.place, self.name, self.kind, self.build = place, name, kind, build
        self.output = name
        self.inputs, self.settings, self.shared = inputs, settings, shared

    def fail(self, sentence: str) -> NoReturn:
        """Raise a ModelFileError that names the layer."""
        raise ModelFileError(f"{self.place}: {sentence}")

    @property
    def x(self) -> Value:
        """The layer's first input."""
        if not self.inputs:
            self.fail("expected an input, found none")
        return self.inputs[0]

    @property
    def rank(self) -> int:
        """Number of axes of the first input."""
        return self.rank_of(self.x)

    def rank_of(self, value: Value) -> int:
        """Return a value's number of axes; a ModelFileError if it is unknown."""
        if value.rank is None:
            self.fail("expected an input of a known number of axes")
        return value.rank

    def axis(self, axis: int, rank: int | None = None) -> int:
        """Return an axis counted from 0; a negative one counts from the end."""
        rank = self.rank if rank is None else rank
        if not -rank <= axis < rank:
            self.fail(f"expected an axis of {rank}, found {axis}")
        return axis % rank

    def setting(self, name: str, default: Any = None) -> Any:
        """Return a setting unchanged."""
        return self.settings.get(name, default)

    def integer(
        self, name: str, default: int | None = None, least: int = 0, most: int = _LARGEST
    ) -> int:
        """Return a setting that must be a whole number."""
        value = self.setting(name, default)
        if type(value) is int and least <= value <= most:
            return value
        self.fail(f"{name}: expected a whole number from {least}, found {str(value)[:60]}")

    def number(self, name: str, default: float | None = None) -> float:
        """Return a setting that must be a finite number."""
        value = self.setting(name, default)
        if isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
        self.fail(f"{name}: expected a number, found {str(value)[:60]}")

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a setting as a bool."""
        return bool(self.setting(name, default))

    def added(
        self, key: Hashable, name: str, array: Array, add: Callable[[str, Array], str] | None = None
    ) -> str:
        """Add weights to the graph once for each key, by default as parameters."""
        if key not in self.shared:
            self.shared[key] = (add or self.build.parameter)(name, array)
        return self.shared[key]

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an intermediate node of the layer; return the name of its result."""
        name: str = self.build.node(
            operator, *inputs, name=f"{self.name}/{operator.lower()}", **attributes
        )
        return name

    def result(
        self, operator: str, *inputs: str, rank: int | None = None, like: Value | None = None,
        **attributes: Any,
    ) -> Value:  # fmt: skip
        """Add the layer's last node; return its result.

        It has the axes of ``like``, by default the first input, or ``rank`` axes as in the file.
        """
        name = self.build.node(operator, *inputs, name=self.output, **attributes)
        return Value(name, rank) if rank is not None else (like or self.x)._replace(name=name)


def operator_of(operator: str, **numbers: tuple[str, float]) -> Callable[[Any], Value]:
    """Return the translation of a layer that applies one ONNX operator to its first input.

    ``numbers`` maps attributes of the operator to the layer's setting and its default.
    """

    def translate(of: Layer) -> Value:
        attributes: dict[str, Any] = {
            name: of.number(*setting) for name, setting in numbers.items()
        }
        return of.result(operator, of.x.name, **attributes)

    return translate


def dropout_of(name: str) -> Callable[[Any], Value]:
    """Return the translation of a dropout layer; ``name`` is its setting for the rate."""

    def translate(of: Layer) -> Value:
        rate = of.number(name, 0.5)
        if not 0 <= rate < 1:
            of.fail(f"{name}: expected at least 0 and less than 1, found {rate}")
        return of.result("Dropout", of.x.name, of.build.constant(rate))

    return translate


def slopes(of: Layer, array: Array, add: Callable[[Array], str]) -> Value:
    """Multiply negative numbers by a slope for each channel, or by one slope."""
    return of.result("PRelu", of.x.name, add(by_channel(array, of.rank)))


def clipped(of: Layer, low: float, high: float) -> Value:
    """Limit numbers to ``low`` to ``high``."""
    return of.result("Clip", of.x.name, of.build.constant(low), of.build.constant(high))


def unit(of: Layer, axes: Iterable[int], eps: float) -> tuple[str, str]:
    """Return the names of the input and of its Euclidean norm along axes, for a division."""
    square = of.add("ReduceSumSquare", of.x.name, of.build.integers(*axes))
    return of.x.name, of.add("Sqrt", of.add("Add", square, of.build.constant(eps)))


def repeated(of: Layer, x: Value, times: Sequence[int]) -> Value:
    """Repeat pixels along each axis of images."""
    return of.result(
        "Resize", x.name, "", of.build.constant([1, 1, *times]), like=x, mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip


def bordered(
    of: Layer, x: Value, before: Sequence[int], behind: Sequence[int], mode: str = "constant"
) -> Value:  # fmt: skip
    """Pad images (N, C, ...); negative widths crop."""
    pads = of.build.integers(0, 0, *before, 0, 0, *behind)
    return of.result("Pad", x.name, pads, like=x, mode=mode)
