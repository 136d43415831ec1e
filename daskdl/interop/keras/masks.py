"""Masks of Keras: the steps of sequences that layers leave out, wherever they stand.

A mask is (N, T) of int64: 1 for a step that counts. Each function adds nodes and returns names.
"""

from __future__ import annotations

from daskdl.interop.building import Value
from daskdl.interop.keras.layers import Layer, layer

_BOOL, _FLOAT, _INT32, _INT64 = 9, 1, 6, 7


def of_numbers(of: Layer, numbers: str) -> str:
    """Return the mask of the steps whose number, of any dtype, is not 0."""
    flags = of.add("Cast", numbers, to=_BOOL)
    return of.build.node("Cast", flags, name=f"{of.name}/mask", to=_INT64)


def floats(of: Layer, mask: str) -> str:
    """Return a mask as floats (N, T, 1)."""
    return of.add("Cast", of.add("Unsqueeze", mask, of.build.integers(2)), to=_FLOAT)


@layer("NotEqual", keys="numpy", several=True)
def not_equal(of: Layer) -> Value:
    """Give the mask of the steps that are not the operand, as Keras 3 writes it."""
    if len(of.inputs) != 2:
        of.fail(f"expected two inputs, found {len(of.inputs)}")
    a, b = (Value(of.add("Cast", x.name, to=_FLOAT), x.rank) for x in map(of.build.last, of.inputs))
    flags = of.add("Cast", of.build.broadcast(a, b, "Sub", f"{of.name}/sub").name, to=_BOOL)
    return of.result("Cast", flags, rank=of.rank, to=_INT64)


@layer("LogicalOr", keys="numpy", several=True)
def either(of: Layer) -> Value:
    """Give the mask of the steps that count in one of two masks."""
    return of.result("Max", *(value.name for value in of.inputs), rank=2)


@layer("Any", keys="numpy axis keepdims")
def any_of(of: Layer) -> Value:
    """Give the mask of the steps with a number that counts."""
    if of.settings.get("axis") != -1 or of.flag("keepdims"):
        of.fail("axis: expected the last one")
    return of.result("ReduceMax", of.x.name, of.build.integers(-1), keepdims=0, rank=of.rank - 1)


def packed(of: Layer, x: str, mask: str) -> tuple[str, str]:
    """Move the steps that count to the front, in their order; also return their number, (N,).

    A masked step changes no state of a recurrent layer, wherever it stands.
    """
    build = of.build
    steps = of.add("Shape", mask, start=1)
    # Of equal numbers TopK takes the first one first.
    _, order = build.nodes_of(
        "TopK",
        [of.add("Cast", mask, to=_FLOAT), steps],
        [f"{of.name}/sorted", f"{of.name}/order"],
    )
    lengths = of.add("ReduceSum", mask, build.integers(1), keepdims=0)
    return _steps(of, x, order), of.add("Cast", lengths, to=_INT32)


def spread(of: Layer, y: str, mask: str, zeros: bool) -> str:
    """Put states (N, T, C) of packed sequences back to their steps.

    A masked step has the state of the step before it, by default zeros, or with ``zeros`` always.
    """
    build = of.build
    behind_zeros = of.add("Pad", y, build.integers(0, 1, 0, 0, 0, 0))
    y = _steps(of, behind_zeros, of.add("CumSum", mask, build.constant(1, "i8")))
    return of.add("Mul", y, floats(of, mask)) if zeros else y


def _steps(of: Layer, x: str, index: str) -> str:
    """Return the steps ``index`` (N, K) of sequences (N, T, C)."""
    places = of.add("Unsqueeze", index, of.build.integers(2))
    return of.add("GatherND", x, places, batch_dims=1)
