"""Samples in partitions, and their batches."""

import importlib
from typing import Any

from daskdl.data.batches import Batches
from daskdl.data.partition import Partition
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Arrays, Recipe
from daskdl.data.samples import SampleSet

__all__ = ["Arrays", "Batches", "Partition", "Ragged", "Recipe", "SampleSet"]

#: Rooms and modules of this one that are loaded when they are used.
_LATER = ("image", "results", "sources", "tabular", "text")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"daskdl.data.{name}")
    raise AttributeError(f"module 'daskdl.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER})
