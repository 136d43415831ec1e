"""Times of archives: minutes, steps, and the split into training, validation and test parts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError
from nowcast.rain.windows import event_labels


def minutes(step: np.timedelta64) -> float:
    """Return a time difference in minutes."""
    return float(step / np.timedelta64(1, "s")) / 60


def frames_ahead(lead_minutes: float, step: np.timedelta64) -> int:
    """Return the number of steps in a lead time.

    Raises SettingsError if it is not a whole number.
    """
    count = lead_minutes / minutes(step)
    if count < 1 or abs(count - round(count)) > 1e-6:
        raise SettingsError(
            f"lead time: expected a multiple of the frames' {minutes(step):g} min, "
            f"found {lead_minutes:g} min; choose the nearest multiple"
        )
    return round(count)


PARTS = ("train", "validation", "test")
#: A cut is moved to the start of an event if at most this fraction of all rain is in between.
NEAR = 0.1


@dataclass(frozen=True)
class Stretch:
    """A time range of a store; a window of frames belongs to it as a whole."""

    store: str  #: Name of the rain store, see `nowcast.rain.identity.name_of`.
    #: Both inclusive.
    first: np.datetime64
    last: np.datetime64

    def __str__(self) -> str:
        return f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Split:
    """The stretches of each part."""

    train: tuple[Stretch, ...]
    validation: tuple[Stretch, ...]
    test: tuple[Stretch, ...]

    def of_store(self, part: str, store: str | None) -> list[Stretch]:
        """Return a part's stretches in one store, or in all stores without a name."""
        return [s for s in getattr(self, part) if store is None or s.store == store]

    def to_dict(self) -> dict[str, list[dict[str, str]]]:
        """Return the stretches as plain data, by part."""
        return {
            part: [
                {name: str(value) for name, value in asdict(stretch).items()}
                for stretch in getattr(self, part)
            ]
            for part in PARTS
        }

    @classmethod
    def from_dict(cls, parts: dict[str, list[dict[str, Any]]]) -> Split:
        """Undo :meth:`to_dict`."""
        return cls(
            **{
                part: tuple(
                    Stretch(s["store"], np.datetime64(s["first"]), np.datetime64(s["last"]))
                    for s in stretches
                )
                for part, stretches in parts.items()
            }
        )


def split_by_rain(
    store: str,
    time: NDArray[np.datetime64],
    wet: NDArray[np.floating],
    fractions: tuple[float, float],
    least: int,
) -> Split:
    """Cut the sorted times of one store into three consecutive parts.

    Parts get their fractions of the rain, not of the frames: an evening without rain is no test.
    If an event (see `nowcast.rain.windows`) begins near a cut, the cut is moved there, so that both
    sides have whole events.

    - ``store``: name of the store.
    - ``time`` (n,): sorted times.
    - ``wet`` (n,): wet fraction of each frame's pixels.
    - ``fractions``: fractions of the rain for training and validation; the rest is for the test.
    - ``least``: least number of frames in each part: one window of input and output.
    - raises DataError if there are too few times for three parts.
    """
    n = len(time)
    if n < 3 * least:
        raise DataError(
            f"{store}: expected at least 3 x {least} frames, one window to train, to validate and "
            f"to test each, found {n}; give more frames, a shorter --lead, or other "
            "stores to --validate and --test on"
        )
    # Each frame counts a little, so that fractions are defined without any rain.
    amount = np.cumsum(np.nan_to_num(wet) + 1e-6)
    share = amount / amount[-1]
    labels = event_labels(np.zeros(n, np.int64), time, np.nan_to_num(wet))
    begins = np.flatnonzero(np.diff(labels)) + 1
    low, cuts = least, []
    for k, fraction in enumerate((fractions[0], sum(fractions))):
        cut = int(np.searchsorted(share, fraction - 1e-9)) + 1
        high = n - least * (2 - k)
        near = begins[(begins >= low) & (begins <= high)]
        near = near[np.abs(share[near - 1] - fraction) <= NEAR]
        if len(near):
            cut = int(near[np.argmin(np.abs(share[near - 1] - fraction))])
        cuts.append(min(max(cut, low), high))
        low = cuts[-1] + least
    bounds = [0, *cuts, n]
    return Split(*((stretch(store, time[a:b]),) for a, b in pairwise(bounds)))


def stretch(store: str, time: NDArray[np.datetime64]) -> Stretch:
    """Return the stretch of a store from its first to its last time."""
    return Stretch(store, time[0].astype("datetime64[s]"), time[-1].astype("datetime64[s]"))
