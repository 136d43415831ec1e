"""Records: single samples become columns; bad records are named and counted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.data.nested import flat
from daskdl.data.ragged import stacked
from daskdl.data.recipe import Arrays
from daskdl.errors import DataError, SettingsError

logger = logging.getLogger(__name__)

#: Choices of what to do about a record that is no sample.
ON_ERROR = ("raise", "skip")

Sample = dict[str, Any]


def check_on_error(on_error: str) -> None:
    """Raise a SettingsError unless it is "raise" or "skip"."""
    if on_error not in ON_ERROR:
        raise SettingsError(f"on_error: expected 'raise' or 'skip', found {on_error!r}")


def as_sample(value: Any) -> Sample:
    """Return a record as values by name: a dict unchanged, a pair as x and y, all else as x."""
    if isinstance(value, tuple) and len(value) == 2:
        value = {"x": value[0], "y": value[1]}
    return flat(value if isinstance(value, dict) else {"x": value})


@dataclass(frozen=True)
class Records:
    """Make a partition of records; a function makes a sample of each, see :func:`as_sample`.

    A record is bad if the function raises, or if its values have other names or shapes than most of
    the partition. It is an error, or left out. Errors name records ``name`` and their number, or
    ``name(number)``.
    """

    function: Callable[[Any], Any]
    on_error: str = "raise"
    name: str | Callable[[int], str] = "record"

    def __call__(self, records: Iterable[Any]) -> Arrays:
        """Return the partition."""
        samples, names, bad = list[Sample](), list[str](), list[str]()
        for i, record in enumerate(records):
            name = self.name(i) if callable(self.name) else f"{self.name} {i}"
            try:
                samples.append(as_sample(self.function(record)))
                names.append(name)
            except Exception as error:
                text = str(error)
                reason = text if isinstance(error, DataError) else f"{type(error).__name__}: {text}"
                bad.append(_refused(name, reason, self.on_error, error))
        counts = Counter(map(_form, samples))
        usual = max(counts, key=counts.__getitem__, default=())
        for sample, name in zip(samples, names, strict=True):
            if _form(sample) != usual:
                reason = f"expected {_words(usual)}, found {_words(_form(sample))}"
                bad.append(_refused(name, reason, self.on_error))
        alike = [sample for sample in samples if _form(sample) == usual]
        return Arrays(columns(alike), tuple(bad))


def columns(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the columns of samples with the same names; none without samples."""
    if not samples:
        return {}
    return {name: stacked([sample[name] for sample in samples]) for name in samples[0]}


def warn(bad: Sequence[str], samples: int) -> None:
    """Log the records that were left out."""
    if bad:
        some = "; ".join(bad[:5]) + ("; ..." if len(bad) > 5 else "")
        logger.warning("%d of %d records left out: %s", len(bad), samples + len(bad), some)


def _refused(name: str, reason: str, on_error: str, cause: BaseException | None = None) -> str:
    """Return the name of a bad record and the reason; or raise a DataError with both."""
    if on_error == "raise":
        raise DataError(
            f"{name}: expected a sample, found one that cannot be used ({reason}); "
            "on_error='skip' leaves such records out"
        ) from cause
    return f"{name} ({reason})"


def _form(sample: Sample) -> tuple[tuple[str, int, tuple[int, ...]], ...]:
    """Return the form of a sample, equal in a partition: names, axes, lengths but the first."""
    return tuple((name, np.ndim(value), np.shape(value)[1:]) for name, value in sample.items())


def _words(form: Any) -> str:
    return ", ".join(f"{name} of {ndim} axes {rest or ''}".strip() for name, ndim, rest in form)
