"""Torch7's modules that hold others, and those that join and take tables of values."""

from __future__ import annotations

import functools

from daskdl.interop.building import Value
from daskdl.interop.torch7.net import Given, Module, module

_TABLES = {"CAddTable": "Add", "CMulTable": "Mul", "CSubTable": "Sub", "CDivTable": "Div",
           "CMaxTable": "Max", "CMinTable": "Min"}  # fmt: skip


@module("Sequential")
def sequential(of: Module) -> Given:
    """Run modules one after the other."""
    return functools.reduce(lambda value, child: child.run(value), of.children(), of.given)


@module("ConcatTable")
def concat_table(of: Module) -> Given:
    """Give each module the same, and return a table of their results."""
    return [child.run(of.given) for child in of.children()]


@module("ParallelTable")
def parallel_table(of: Module) -> Given:
    """Give each module one value of a table."""
    children, values = of.children(), of.several()
    if len(children) != len(values):
        of.fail(f"expected {len(children)} values, found {len(values)}")
    return [child.run(value) for child, value in zip(children, values, strict=True)]


@module("Concat", "DepthConcat")
def concat(of: Module) -> Given:
    """Give each module the same, and join their results along an axis."""
    if of.kind == "DepthConcat":
        of.fail("results of different sizes are not supported")
    of.given = [child.run(of.given) for child in of.children()]
    return join_table(of)


@module("JoinTable")
def join_table(of: Module) -> Given:
    """Join the values of a table along an axis."""
    if not of.given:
        of.fail("expected values to join, found none")
    values = [of.one(value) for value in of.several()]
    inner = "nInputDims" if of.kind == "JoinTable" else ""
    axis = of.lua_axis(of.integer("dimension", 2, -9), inner, values[0])
    return of.result("Concat", *(v.name for v in values), like=values[0], axis=axis)


@module(*_TABLES)
def elementwise_table(of: Module) -> Given:
    """Add, multiply and the like the values of a table."""
    values = [of.one(value) for value in of.several()]
    operator = _TABLES[of.kind]
    return functools.reduce(lambda a, b: of.result(operator, a.name, b.name, like=a), values)


@module("SelectTable")
def select_table(of: Module) -> Given:
    """Take one value of a table."""
    values = of.several()
    index = of.integer("index", None, -len(values))
    if not 1 <= abs(index) <= len(values):
        of.fail(f"index: expected 1 to {len(values)}, found {index}")
    value: Given = values[index - 1 if index > 0 else index]
    return value


@module("FlattenTable")
def flatten_table(of: Module) -> Given:
    """Take the values of tables in tables, as one table."""
    values: list[Value] = []
    waiting = [of.given]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Value):
            values.append(part)
        else:
            waiting += part[::-1]
    return values


@module("Identity", "Copy", "Contiguous", "TotalVariation", "ContentLoss", "StyleLoss",
        "GradientReversal", "L1Penalty")  # fmt: skip
def identity(of: Module) -> Given:
    """Return the value itself."""
    return of.given
