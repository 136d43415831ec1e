"""Report of an ingest: scans written, files that failed, and how much is missing."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from daskdl.errors import DataError
from nowcast.ingest.gridding import Coverage
from nowcast.ingest.rain_map import Failure
from nowcast.mosaic import Calibration, offsets
from nowcast.radar.plainfile import WHOLE

log = logging.getLogger("nowcast.ingest")

# Per cent; where more is missing, clear air was mistaken for it or the grid is far too large.
MOST_MISSING = 50.0
# Decibels from which on a difference of calibration is worth to be taken out.
LEAST_DIFFERENCE = 0.5

RANGE, GRID = "the radar's range", "the composite's grid"


@dataclass
class IngestReport:
    """Counts and names of an ingest."""

    store: str  #: The rain store.
    written: int = 0  #: Scans added.
    existing: int = 0  #: Scans whose time was in the store before, which were not read again.
    repeated: int = 0  #: Scans left out because another one of the same run has their time.
    ignored: int = 0  #: Files in folders that are no radar files.
    #: Files or scans that could not be read, and why.
    failed: list[tuple[str, str]] = field(default_factory=list)
    #: The same for each file: why, by its path or address.
    unread: dict[str, str] = field(default_factory=dict)
    mistakes: int = 0  #: How many of them for a mistake of this program.
    #: How many cells of what was written are missing, dry and wet: for polar scans of those that
    #: the radar reaches, for composites of all.
    coverage: Coverage = field(default_factory=Coverage)
    area: str = RANGE  #: Which of these, for people.
    #: Frames of a mosaic in the store that were made anew, since more radars are there.
    anew: int = 0
    #: Gates of rain that each step of the cleaning took out; ``"echo"`` is how many there were.
    removed: dict[str, int] = field(default_factory=dict)
    #: Of a mosaic: frames that each radar took part in.
    radars: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.calibration: Calibration | None = None
        # Of copies of remote files: a message names what the user named.
        self.addresses: dict[str, str] = {}

    def count_removed(self, removed: Mapping[str, int]) -> None:
        """Add the gates that were taken out of a scan."""
        for step, gates in removed.items():
            self.removed[step] = self.removed.get(step, 0) + gates

    def cleaning(self) -> str:
        """Return a sentence on the echo that cleaning took out; empty for none."""
        echo = max(self.removed.get("echo", 0), 1)
        parts = [
            f"{step} {100 * gates / echo:.2g} %{' (lowered)' if step == 'bright_band' else ''}"
            for step, gates in self.removed.items() if step != "echo"
        ]  # fmt: skip
        return f"of the echo were taken out: {', '.join(parts)}" if parts else ""

    def mosaic(self) -> list[str]:
        """Return sentences on the radars of a mosaic: missing scans, and differences."""
        lines = [
            f"{name} is missing in {self.written + self.anew - frames} of "
            f"{self.written + self.anew} frames"
            for name, frames in self.radars.items() if frames < self.written + self.anew
        ]  # fmt: skip
        differences = [] if self.calibration is None else self.calibration.differences()
        lines += [
            f"{pair.second} shows {pair.decibel:+.1f} dB against {pair.first}, the median of "
            f"{pair.cells} cells of rain that both see about as well"
            for pair in differences
        ]
        taken_out = [
            "--offset " + shlex.quote(f"{name}={decibel:+.1f}")
            for name, decibel in offsets(differences).items()
        ]
        if any(abs(pair.decibel) >= LEAST_DIFFERENCE for pair in differences):
            lines.append(f"in a new store, {' '.join(taken_out)} takes the differences out")
        return lines

    def fail(self, failure: Failure) -> None:
        """Log and count files that could not be read."""
        name, reason = self._addressed(failure.name), self._addressed(failure.reason)
        log.warning("%s: skipped: %s", name, reason)
        self.failed.append((name, reason))
        for file in failure.files or (failure.name,):
            self.unread[self.addresses.get(file, file)] = reason
        self.mistakes += failure.ours

    def _addressed(self, text: str) -> str:
        """Return a text with addresses of files in place of their copies' paths."""
        if not self.addresses:
            return text
        longest_first = sorted(self.addresses, key=len, reverse=True)
        # A path ends where no more of a name follows: "1" is not in "10", nor in "1.h5".
        paths = rf"({'|'.join(map(re.escape, longest_first))})(?![\w-]|\.\w)"
        text = re.sub(paths, lambda match: self.addresses[match[1]], text)
        return text.replace(WHOLE, "wait for a whole one at this address, or leave it out")

    def warn_of_missing(self) -> None:
        """Log a warning if more than half of the written cells are missing."""
        missing = self.coverage.shares()[0]
        hint = (
            "files with one code for no echo and missing are read by --fill 'no echo'"
            if self.area == RANGE
            else "cells outside of all radars' range count as missing too; where no echo has no "
            "number either, --fill 'no echo' takes all of these for dry"
        )
        if missing > MOST_MISSING:
            log.warning(
                "%s: %.0f %% of %s is missing; expected at most %g %%: look at a picture; %s",
                self.store, missing, self.area, MOST_MISSING, hint,
            )  # fmt: skip

    def nothing_read(self) -> DataError:
        """Return the error that says why there is nothing to write."""
        if not self.failed:
            return DataError(
                f"sources: expected radar scans, found none ({self.ignored} other files); name a "
                "file alone to be told why it is none"
            )
        name, reason = self.failed[0]
        if len(self.failed) == 1:
            return DataError(f"{name}: {reason}")
        return DataError(
            f"sources: none of {len(self.failed)} files could be read; the first is {name}: "
            f"{reason}"
        )
