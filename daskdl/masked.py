"""Masked arrays: values under a mask are no data."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import DataError


def unmasked(where: str, x: Any) -> Any:
    """Return a masked array as a plain one, with masked floats as NaN; other values unchanged.

    Raises DataError when other numbers than floats are masked, as they have no NaN.
    """
    if not isinstance(x, np.ma.MaskedArray):
        return x
    if np.ma.is_masked(x):
        if x.dtype.kind != "f":
            raise DataError(
                f"{where}: expected no masked elements of {x.dtype}, which has no NaN, found "
                f"{np.ma.getmaskarray(x).sum()}; array.filled(value) gives them one"
            )
        return x.filled(np.nan)
    return np.asarray(x)
