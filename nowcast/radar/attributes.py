"""Attributes of HDF5 and netCDF objects as one text or one number, however they are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import DataError


def text_of(value: Any) -> str:
    """Return a text that is bytes, an array with one element, or padded by zeros and blanks."""
    if isinstance(value, np.ndarray | list | tuple):
        flat = np.asarray(value).reshape(-1)
        value = flat[0] if flat.size else ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return str(value).strip("\x00 ")


def text(node: Any, name: str, default: str = "") -> str:
    """Return a text attribute of an object."""
    return text_of(node.attrs.get(name, default))


def number(node: Any, name: str, default: float | None = None) -> float:
    """Return a number of an object's attributes; one in an array or written as text is one too.

    Raises
    ------
    DataError
        When there is none and no default, or it is no single finite number.
    """
    value = node.attrs.get(name)
    if value is None:
        if default is None:
            raise DataError(f"expected an attribute {name!r} of {_name(node)}, found none")
        return default
    flat = np.asarray(value).reshape(-1)
    try:
        result = float(flat[0]) if flat.size == 1 else np.nan
    except (TypeError, ValueError):
        result = np.nan
    if not np.isfinite(result):
        raise DataError(f"expected {name!r} of {_name(node)} to be one number, found {value!r}")
    return result


def count(node: Any, name: str, most: int) -> int:
    """Return a number of an object's attributes that counts something, from 1 to ``most``."""
    value = number(node, name)
    if not 1 <= value <= most or value != int(value):
        raise DataError(
            f"expected {name!r} of {_name(node)} to be a number from 1 to {most}, found {value:g}"
        )
    return int(value)


def _name(node: Any) -> str:
    return str(getattr(node, "name", "the file"))
