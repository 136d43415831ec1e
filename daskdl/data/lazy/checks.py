"""Checks: samples of a wrong shape, label or value, named and counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.lazy.transformations import stretches
from daskdl.data.partition import Partition
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Arrays
from daskdl.errors import DataError

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Check:
    """Keep the samples that pass all checks of :meth:`SampleSet.check`; raise or name the others.

    Errors call the partition by ``name``.
    """

    shapes: Mapping[str, Shape]
    classes: Mapping[str, int]
    finite: bool
    on_error: str
    name: str

    def __call__(self, partition: Partition) -> Partition:
        """Return a partition of them."""
        bad, good = list[str](), [np.arange(0)]
        for where in stretches(len(partition), 256):
            wrong: dict[int, str] = {}
            batch = partition.take(where)
            missing = sorted({*self.shapes, *self.classes} - batch.keys())
            if missing:
                raise DataError(
                    f"SampleSet.check: expected {missing} in every sample, found {sorted(batch)}"
                    "; name the arrays that there are, or leave the check out"
                )
            for rows, reason in self._wrong(batch):
                for row in np.flatnonzero(rows):
                    wrong.setdefault(int(row), reason(int(row)))
            bad += [f"{self.name}, sample {where[row]} ({wrong[row]})" for row in sorted(wrong)]
            good.append(np.delete(where, list(wrong)))
        if bad and self.on_error == "raise":
            raise DataError(
                f"SampleSet.check: expected no bad sample, found {bad[0]}"
                + (f" and {len(bad) - 1} more in this partition" if len(bad) > 1 else "")
                + "; on_error='skip' leaves them out"
            )
        if not bad:
            return partition
        picked = partition.pick(np.concatenate(good))
        if not isinstance(picked, Arrays):
            picked = Arrays(picked.take(np.arange(len(picked))))
        return Arrays(picked.arrays, (*picked.bad, *bad))

    def _wrong(self, batch: Mapping[str, Any]) -> Iterator[tuple[NDArray[np.bool_], Any]]:
        """Yield masks of wrong samples, each with a function from their number to the reason."""
        for name, shape in self.shapes.items():
            shapes = [np.shape(value) for value in batch[name]]
            unlike = np.array([not _fits(actual, shape) for actual in shapes], bool)
            yield unlike, lambda row, n=name, s=shape, f=shapes: f"{n} of shape {f[row]}, not {s}"
        for name, classes in self.classes.items():
            labels = np.asarray(batch[name])
            apart: Any = ((labels < 0) | (labels >= classes)).reshape(len(labels), -1)
            outside: NDArray[np.bool_] = apart.any(axis=1)
            yield (
                outside,
                lambda row, n=name, c=classes, a=labels: f"{n} = {a[row]}, not from 0 to {c - 1}",
            )
        for name, column in batch.items() if self.finite else ():
            values = column.values if isinstance(column, Ragged) else column
            if values.dtype.kind not in "fc":
                continue
            numbers = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
            if isinstance(column, Ragged):
                sums = np.concatenate([[0], np.cumsum(numbers)])[column.offsets]
                numbers = np.diff(sums) > 0
            yield numbers, lambda row, n=name: f"{n} is not finite"


def _fits(actual: tuple[int, ...], shape: Shape) -> bool:
    """Return whether a shape fits another, in which None stands for any length."""
    return len(actual) == len(shape) and all(
        wanted is None or n == wanted for n, wanted in zip(actual, shape, strict=True)
    )
