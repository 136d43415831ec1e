"""The affine map over the last axis."""

from __future__ import annotations

from daskdl.tensor import Array, op


def rows(x: Array) -> Array:
    """View (..., C) as (rows, C)."""
    return x.reshape(-1, x.shape[-1])


@op
def linear(x: Array, weight: Array, bias: Array | None):  # type: ignore[no-untyped-def]
    """Compute x @ weight.T + bias.  x (..., in), weight (out, in), bias (out,) -> (..., out)."""
    y = (rows(x) @ weight.T).reshape(*x.shape[:-1], len(weight))
    if bias is not None:
        y += bias

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        return (
            lambda: (rows(dy) @ weight).reshape(x.shape),
            lambda: rows(dy).T @ rows(x),
            lambda: rows(dy).sum(0),
        )

    return y, backward
