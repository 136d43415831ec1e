"""The split of an archive by time, so that nothing of what is verified was ever trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Split:
    """First and last time of each part; a window of frames belongs to a part as a whole.

    Parameters
    ----------
    train, validation, test : (first, last) as datetime64[s], both inclusive
    """

    train: tuple[np.datetime64, np.datetime64]
    validation: tuple[np.datetime64, np.datetime64]
    test: tuple[np.datetime64, np.datetime64]

    def to_dict(self) -> dict[str, list[str]]:
        """Return the bounds as ISO strings, by part."""
        return {part: [str(bound) for bound in getattr(self, part)] for part in PARTS}

    @classmethod
    def from_dict(cls, bounds: dict[str, list[str]]) -> Split:
        """Undo :meth:`to_dict`."""
        return cls(
            **{part: (np.datetime64(a), np.datetime64(b)) for part, (a, b) in bounds.items()}
        )


def split_by_time(
    time: NDArray[np.datetime64], fractions: tuple[float, float], least: int
) -> Split:
    """Cut sorted times into three contiguous parts.

    Parameters
    ----------
    time : array (n,)
        Sorted.
    fractions : (train, validation)
        Of the number of frames; the rest is the test part.
    least : int
        Frames that each part must hold: one window of input and output.

    Raises
    ------
    DataError
        When a part would be shorter than one window.
    """
    n = len(time)
    first = round(n * fractions[0])
    second = round(n * (fractions[0] + fractions[1]))
    parts = dict(zip(PARTS, (time[:first], time[first:second], time[second:]), strict=True))
    for name, part in parts.items():
        if len(part) < least:
            raise DataError(
                f"split by time: the {name} part of {n} frames holds {len(part)}, expected at "
                f"least one window of {least} frames; give more frames, other fractions, or a "
                "shorter input or lead time"
            )
    return Split(
        **{
            name: (part[0].astype("datetime64[s]"), part[-1].astype("datetime64[s]"))
            for name, part in parts.items()
        }
    )
