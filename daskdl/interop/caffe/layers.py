"""The table of Caffe's layers, and what a function that makes nodes of one knows of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from daskdl.errors import ModelFileError
from daskdl.interop.building import Builder, Table, Value
from daskdl.interop.caffe.prototxt import Message
from daskdl.tensor import Array


@dataclass
class Layer:
    """One layer of a network.

    Attributes
    ----------
    name, kind : str
        Kinds are those of Caffe's second version.
    build : Builder
        Takes the nodes.
    bottoms : list of Value
    names : list of str
        For the results.
    settings : Message
    blobs : list of array
        Its weights.
    shared : dict
        Weights that layers have in common, by the names they have as ``param``.
    scale : Layer, optional
        Of a BatchNorm, the Scale behind it.
    """

    name: str
    kind: str
    build: Builder
    bottoms: list[Value]
    names: list[str]
    settings: Message
    blobs: list[Array] = field(default_factory=list)
    shared: dict[str, str] = field(default_factory=dict)
    scale: Layer | None = None

    def fail(self, sentence: str) -> NoReturn:
        """Raise a ModelFileError that names the layer."""
        raise ModelFileError(f"{self.settings.where}: layer {self.name!r}, {self.kind}: {sentence}")

    def bottom(self, i: int = 0) -> Value:
        """Return an input."""
        if i >= len(self.bottoms):
            self.fail(f"expected {i + 1} bottoms, found {len(self.bottoms)}")
        return self.bottoms[i]

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Add a node in the middle of what the layer does."""
        return self.build.node(
            operator, *inputs, name=f"{self.name}/{operator.lower()}", **attributes
        )

    def result(
        self, operator: str, *inputs: str, rank: int | None = None, **attributes: object
    ) -> Value:
        """Add the node whose result is the layer's."""
        name = self.build.node(operator, *inputs, name=self.names[0], **attributes)
        return Value(name, self.bottom().rank if rank is None else rank)

    def axis(self, axis: int, rank: int | None = None) -> int:
        """Return an axis from 0, which Caffe counts from the end if it is negative."""
        rank = self.bottom().rank if rank is None else rank
        if not -rank <= axis < rank:
            self.fail(f"expected an axis of {rank}, found {axis}")
        return axis % rank

    def blob(self, i: int, what: str) -> Array:
        """Return weights as float32."""
        if i >= len(self.blobs):
            self.fail(
                f"expected its {what}, found {len(self.blobs)} blobs under this name; are the "
                "weights those of this network?"
            )
        return self.blobs[i].astype(np.float32, copy=False)

    def vector(self, i: int, what: str, count: int) -> Array:
        """Return weights of which there is one for each channel; old files give them four axes."""
        found = self.blob(i, what)
        if found.size != count:
            self.fail(f"expected {count} numbers as {what}, found {found.size}")
        return found.reshape(count)

    def weight(self, i: int, what: str, array: Array, filters: bool = False) -> str:
        """Add weights to the graph, once where layers have them in common."""
        given = self.settings.fields.get("param", [])
        spec = given[i] if i < len(given) else None
        key = (
            spec.word("name")
            if isinstance(spec, Message)
            else spec
            if isinstance(spec, str)
            else ""
        )
        if key and key in self.shared:
            return self.shared[key]
        add = self.build.filters if filters else self.build.parameter
        name = add(f"{self.name}.{what}", array)
        if key:
            self.shared[key] = name
        return name

    def constant(self, value: object) -> str:
        """Add a number."""
        return self.build.constant(value)


TABLE = Table()
#: Decorator of a function that makes nodes of a layer: puts it into the table, for its kinds.
layer = TABLE.of
