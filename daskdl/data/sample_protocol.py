"""The protocol of a SampleSet: what of it is shown and exported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from daskdl.data.partition import Batch
from daskdl.data.recipe import Recipe


class Described(Protocol):
    """Samples whose recipes, functions and arrays are known; see :class:`SampleSet`."""

    functions: tuple[Callable[..., Any], ...]

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Recipes of the partitions, counted."""

    @property
    def known(self) -> tuple[Recipe, ...]:
        """Recipes of the partitions, counted or not."""

    @property
    def is_counted(self) -> bool:
        """Whether the number of samples is known."""

    @property
    def has_schema(self) -> bool:
        """Whether the schema is known without loading anything."""

    @property
    def schema(self) -> Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and dtype of each array of a sample."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Samples of each partition."""

    @property
    def partitions(self) -> int:
        """Number of partitions."""

    @property
    def nbytes(self) -> int:
        """Bytes of all partitions, as far as their sources tell."""

    def __len__(self) -> int: ...

    def head(self, n: int = 5) -> Batch:
        """Return the first samples."""
