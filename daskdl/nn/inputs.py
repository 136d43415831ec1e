"""Inputs of a network, which computes in float32: conversion of samples' numbers, and the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from daskdl.tensor import Tensor


def as_inputs(x: Any) -> Any:
    """Return floating-point numbers as float32, and all else as it is.

    Whole numbers stay what they are, such as ids, and so does what is no array, such as a Ragged
    column for a model that reads it. Of a tuple or mapping that is done to each.
    """
    if isinstance(x, np.ndarray):
        return x.astype(np.float32, copy=False) if x.dtype.kind == "f" else x
    return each(as_inputs, x) if isinstance(x, (tuple, Mapping)) else x


def each(function: Callable[[Any], Any], x: Any) -> Any:
    """Return a function of an array, or of each in a tuple or mapping, which it stays."""
    if isinstance(x, Mapping):
        return {name: function(part) for name, part in x.items()}
    return tuple(map(function, x)) if isinstance(x, (tuple, list)) else function(x)


def call(model: Callable[..., Any], x: Any) -> Any:
    """Call a model with inputs: an array, a tuple one by one, a mapping by the names in it."""
    if isinstance(x, tuple):
        return model(*x)
    named = not isinstance(x, np.ndarray) and isinstance(x, Mapping)  # which takes longer to ask
    return model(**x) if named else model(x)


def parts_of(x: Any) -> list[Any]:
    """Return the arrays of inputs or of results, in their order."""
    if isinstance(x, Mapping):
        return list(x.values())
    return list(x) if isinstance(x, (tuple, list)) else [x]


def as_arrays(found: Any) -> Any:
    """Return the arrays of tensors, of one, of a tuple or of a mapping of them."""
    if isinstance(found, Tensor):
        return found.data
    return each(as_arrays, found) if isinstance(found, (tuple, list, Mapping)) else found
