"""The summary of a model: a table of its modules, with results and sizes."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.nn.core.arguments import call, parts_of
from daskdl.nn.core.state import arrays, watched
from daskdl.nn.core.structure import WEIGHTS, Structure
from daskdl.tensor import no_grad

HEADINGS = ("name", "layer", "output shape", "parameters", "bytes")


@dataclass(frozen=True)
class Row:
    """One module; ``bytes`` is the size of its result for one sample."""

    name: str
    layer: str
    output_shapes: tuple[tuple[int | str, ...], ...]
    parameters: int
    bytes: int

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the table's cells."""
        shapes = " ".join(f"({', '.join(map(str, shape))})" for shape in self.output_shapes)
        return self.name, self.layer, shapes, f"{self.parameters:,}", f"{self.bytes:,}"


@dataclass(frozen=True)
class Summary:
    """All modules in the order in which they finished, and sums over them.

    A row's ``parameters`` exclude inner modules' parameters, so that rows add up.
    """

    rows: tuple[Row, ...]
    parameters: int
    trainable: int
    buffers: int

    def total(self) -> str:
        """Return the line of totals."""
        return (
            f"{self.parameters:,} parameters ({self.trainable:,} trainable) and "
            f"{self.buffers:,} numbers in buffers, {4 * (self.parameters + self.buffers):,} bytes"
        )

    def __str__(self) -> str:
        table = [HEADINGS, *(row.cells() for row in self.rows)]
        widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
        lines = [
            "  ".join(
                cell.rjust(width) if i > 2 else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in table
        ]
        rule = "-" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, self.total()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

        body = "".join(line(row.cells(), "td") for row in self.rows)
        return (
            f"<table><thead>{line(HEADINGS, 'th')}</thead><tbody>{body}</tbody></table>"
            f"<p>{html.escape(self.total())}</p>"
        )


def summarise(
    model: Structure,
    input_shape: Sequence[int] | Sequence[Sequence[int]] | Mapping[str, Sequence[int]],
    dtype: str | Sequence[str] = "float32",
) -> Summary:
    """Run one sample of zeros through a model in inference; return the summary.

    For the arguments see :meth:`daskdl.nn.Module.summary`; the model does not change.
    """
    named = input_shape if isinstance(input_shape, Mapping) else None
    several = named is None and any(not isinstance(n, int) for n in input_shape)
    shapes: Any = parts_of(input_shape if named or several else [tuple(input_shape)])
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else dtype
    arrays_in = [np.zeros((1, *shape), d) for shape, d in zip(shapes, dtypes, strict=True)]
    inputs = tuple(arrays_in) if named is None else dict(zip(named, arrays_in, strict=True))
    seen: dict[str, Any] = {}
    with (
        no_grad(),
        _inference(model),
        watched(model, lambda name, module, inputs, result: seen.update({name: result})),
    ):
        call(model, inputs)
    rows: list[Row] = []
    counted: set[int] = set()
    for name, module in model.modules():
        parts = [part for part in arrays(seen.get(name)) if part.ndim]
        weights = [
            p for p in vars(module).values() if isinstance(p, WEIGHTS) and id(p) not in counted
        ]
        counted.update(map(id, weights))
        rows.append(
            Row(
                name,
                type(module).__name__,
                tuple(_sample(part.shape) for part in parts),
                sum(p.data.size for p in weights),
                sum(part.nbytes for part in parts),
            )
        )
    parameters = [p for _, p in model.held() if isinstance(p, WEIGHTS)]
    return Summary(
        tuple(rows),
        sum(p.data.size for p in parameters),
        sum(p.data.size for p in parameters if p.requires_grad),
        sum(b.data.size for _, b in model.named_buffers()),
    )


@contextmanager
def _inference(model: Structure) -> Iterator[None]:
    """Set all modules to inference inside the block."""
    modes = [(module, module.__dict__.get("training")) for _, module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.__dict__.pop("training", None)
            if mode is not None:
                module.training = mode


def _sample(shape: tuple[int, ...]) -> tuple[int | str, ...]:
    return ("N", *shape[1:]) if shape[0] == 1 else shape
