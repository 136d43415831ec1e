"""Torch7's modules that hold others, and those that join and take tables of values."""

from __future__ import annotations

import functools

from daskdl.interop.building import Value
from daskdl.interop.torch7.net import Given, Module, module

_TABLES = {"CAddTable": "Add", "CMulTable": "Mul", "CSubTable": "Sub", "CDivTable": "Div",
           "CMaxTable": "Max", "CMinTable": "Min"}  # fmt: skip


@module("Sequential")
def sequential(of: Module, value: Given) -> Given:
    """Run modules one after the other."""
    for child in of.children():
        value = child.result(value)
    return value


@module("ConcatTable")
def concat_table(of: Module, value: Given) -> Given:
    """Give each module the same, and return a table of their results."""
    return [child.result(value) for child in of.children()]


@module("ParallelTable")
def parallel_table(of: Module, value: Given) -> Given:
    """Give each module one value of a table."""
    children, given = of.children(), of.several(value)
    if len(children) != len(given):
        of.fail(f"expected {len(children)} values, found {len(given)}")
    return [child.result(part) for child, part in zip(children, given, strict=True)]


def _axis(of: Module, axis: int, value: Value, inner: int = 0) -> int:
    """Return Lua's axis from 1 as ours from 0; ``inner`` are the axes of a single sample."""
    axis = axis + value.rank + 1 if axis < 0 else axis
    axis += value.rank - inner if inner and value.rank > inner else 0
    if not 1 <= axis <= value.rank:
        of.fail(f"expected an axis of {value.rank}, found {axis}")
    return axis - 1


@module("Concat", "DepthConcat")
def concat(of: Module, value: Given) -> Given:
    """Give each module the same, and join their results along an axis."""
    if of.kind == "DepthConcat":
        of.fail("results of different sizes are not supported")
    return _joined(of, [of.one(child.result(value)) for child in of.children()])


def _joined(of: Module, values: list[Value], inner: int = 0) -> Value:
    if not values:
        of.fail("expected values to join, found none")
    axis = _axis(of, of.integer("dimension", 2, -9), values[0], inner)
    return of.made(values[0], "Concat", *(v.name for v in values), axis=axis)


@module("JoinTable")
def join_table(of: Module, value: Given) -> Given:
    """Join the values of a table along an axis."""
    inner = of.held.fields.get("nInputDims")
    values = [of.one(v) for v in of.several(value)]
    return _joined(of, values, inner if isinstance(inner, int) else 0)


@module(*_TABLES)
def elementwise_table(of: Module, value: Given) -> Given:
    """Add, multiply and the like the values of a table."""
    values = [of.one(v) for v in of.several(value)]
    return functools.reduce(lambda a, b: of.made(a, _TABLES[of.kind], a.name, b.name), values)


@module("SelectTable")
def select_table(of: Module, value: Given) -> Given:
    """Take one value of a table."""
    given = of.several(value)
    index = of.integer("index", None, -len(given))
    if not 1 <= abs(index) <= len(given):
        of.fail(f"index: expected 1 to {len(given)}, found {index}")
    found: Given = given[index - 1 if index > 0 else index]
    return found


@module("FlattenTable")
def flatten_table(of: Module, value: Given) -> Given:
    """Take the values of tables in tables, as one table."""
    found: list[Value] = []
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Value):
            found.append(part)
        else:
            waiting += part[::-1]
    return found


@module("Identity", "Copy", "Contiguous", "TotalVariation", "ContentLoss", "StyleLoss",
        "GradientReversal", "L1Penalty")  # fmt: skip
def identity(of: Module, value: Given) -> Given:
    """Return the value itself."""
    return value
