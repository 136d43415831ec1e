"""Inputs: what numbers of samples are to a network, which computes in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import DataError
from daskdl.tensor import Array


def as_inputs(where: str, x: Any) -> Array:
    """Return inputs as models take them: floating-point numbers as float32, others as they are.

    Parameters
    ----------
    where : str
        Who asks, for the message.
    x : array_like (N, ...)

    Raises
    ------
    DataError
        When they are not numbers.
    """
    x = np.asarray(x)
    if x.dtype.kind not in "fiub" or not x.ndim:
        raise DataError(f"{where}: expected numbers (N, ...), found {x.dtype} of shape {x.shape}")
    return x.astype(np.float32, copy=False) if x.dtype.kind == "f" else x
