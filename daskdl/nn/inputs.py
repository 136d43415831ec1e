"""Inputs of a network, which computes in float32: conversion of samples' numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_inputs(x: Any) -> Any:
    """Return floating-point numbers as float32, and all else as it is.

    Whole numbers stay what they are, such as ids, and so does what is no array, such as a Ragged
    column for a model that reads it.
    """
    numbers = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    return x.astype(np.float32, copy=False) if numbers else x
