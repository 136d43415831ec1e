"""Nested: several arrays under one name of a sample, each a column of its own.

A tuple or a mapping under a name, as in ``x={"age": a, "words": w}``, becomes flat columns:
``x.age`` and ``x.words``, or ``x.0`` and ``x.1`` of a tuple. So partitions, streams and shards have
arrays only. A model, its loss and its metrics see the nested form again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskdl.errors import DataError


def flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name; members of a tuple of arrays or of a mapping get dotted names.

    Raises
    ------
    DataError
        For a mapping in a mapping, or one without anything in it.

    Examples
    --------
    >>> sorted(flat({"x": {"age": [1], "words": [2]}, "y": [3]}))
    ['x.age', 'x.words', 'y']
    """
    if not any(map(is_nested, fields.values())):
        return fields if type(fields) is dict else dict(fields)
    by_name: dict[str, Any] = {}
    for name, value in fields.items():
        if not is_nested(value):
            by_name[name] = value
            continue
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        inner = {f"{name}.{key}": part for key, part in parts}
        if not inner or any(map(is_nested, inner.values())):
            raise DataError(
                f"samples, {name}: expected an array, or one tuple or mapping of arrays, found "
                f"{'an empty one' if not inner else 'another one inside of it'}; name each array "
                "once, as in x={'age': ..., 'words': ...}"
            )
        by_name.update(inner)
    return by_name


def is_nested(value: Any) -> bool:
    """Return whether a value has several arrays: a mapping, or a tuple that is not of numbers."""
    if isinstance(value, np.ndarray):  # by far the most, and the question about a Mapping is slow
        return False
    if isinstance(value, tuple):
        return bool(value) and all(hasattr(v, "dtype") and getattr(v, "ndim", 1) for v in value)
    return isinstance(value, Mapping) and not hasattr(value, "shape")  # as some sparse arrays are


def has(batch: Mapping[str, Any], name: str) -> bool:
    """Return whether a batch has an array, or several, under a name."""
    return name in batch or any(key.startswith(f"{name}.") for key in batch)


def nested(batch: Mapping[str, Any], name: str) -> Any:
    """Return a batch's value under a name: an array, a tuple of them, or a dict.

    Raises
    ------
    KeyError
        When there is nothing.

    Examples
    --------
    >>> nested({"x.age": 1, "x.words": 2, "y": 3}, "x")
    {'age': 1, 'words': 2}
    >>> nested({"x.0": 1, "x.1": 2}, "x")
    (1, 2)
    """
    if name in batch:
        return batch[name]
    first = len(name) + 1
    inner = {key[first:]: value for key, value in batch.items() if key.startswith(f"{name}.")}
    if not inner:
        raise KeyError(name)
    numbers = [str(i) for i in range(len(inner))]
    return tuple(inner[i] for i in numbers) if inner.keys() == set(numbers) else inner
