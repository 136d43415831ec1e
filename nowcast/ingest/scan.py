"""A scan: the files that give one rain map, and the time it is valid for.

A polar scan is valid at the start of its volume, a composite at its stated time (the end of the
interval for accumulations), rounded to the whole minute; with a step, to its nearest multiple.
Sweeps in separate files belong to the volume of the clock interval (five minutes, or the step) in
which they start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nowcast.radar.header import Format, Header

MINUTE = np.timedelta64(1, "m")
VOLUME = np.timedelta64(5, "m")
# A sweep that starts this much before its interval still belongs to it.
GRACE = np.timedelta64(30, "s")
EPOCH = np.datetime64("1970-01-01", "s")


@dataclass(frozen=True)
class Scan:
    """The files that one task reads: several if sweeps or moments are in separate files.

    ``time`` is the valid time, UTC, in seconds; ``index`` is the map in a composite's file.
    """

    time: np.datetime64
    headers: tuple[Header, ...]
    index: int = 0

    @property
    def scanned(self) -> np.datetime64:
        """Return the start of the scan; ``time`` is rounded from it."""
        return min(header.times[self.index] for header in self.headers).astype("datetime64[s]")

    @property
    def format(self) -> Format:
        """Format of the files."""
        return self.headers[0].format

    @property
    def station(self) -> str:
        """Name of the radar or composite."""
        return self.headers[0].station

    @property
    def paths(self) -> list[str]:
        """The files' paths."""
        return [header.path for header in self.headers]

    @property
    def name(self) -> str:
        """The files' names, for messages."""
        return ", ".join(self.paths)


def group_scans(
    headers: Sequence[Header], step: np.timedelta64 | None = None
) -> tuple[list[Scan], list[Scan]]:
    """Return the scans of files, sorted by time and unique; and repeated ones.

    The files are of one radar or one composite; times are rounded to multiples of ``step``.
    """
    members: dict[tuple[np.datetime64, np.datetime64], list[Header]] = {}
    scans: list[Scan] = []
    for header in headers:
        if header.part is not None:
            start = header.times[0].astype("datetime64[s]")
            members.setdefault((nearest(start, step or MINUTE), start), []).append(header)
        elif header.format.polar and header.format is not Format.NEXRAD:
            # Volumes that a step brings to one time stay apart; their moments belong together.
            valid = _polar_time(header, step)
            start = valid if header.single_sweep else nearest(header.times[0], MINUTE)
            members.setdefault((valid, start), []).append(header)
        else:
            scans += [
                Scan(nearest(time, step or MINUTE), (header,), index)
                for index, time in enumerate(header.times)
            ]
    scans += [
        Scan(time, tuple(sorted(group, key=lambda header: header.part or 0)))
        for (time, _), group in members.items()
    ]

    chosen: dict[np.datetime64, Scan] = {}
    seconds: list[Scan] = []
    # Of two scans that round to one time the one closer to it is taken.
    for scan in sorted(scans, key=lambda scan: (scan.time, _distance(scan), scan.name)):
        if scan.time in chosen:
            seconds.append(scan)
        else:
            chosen[scan.time] = scan
    return [chosen[time] for time in sorted(chosen)], seconds


def nearest(time: np.datetime64, step: np.timedelta64) -> np.datetime64:
    """Return the multiple of ``step`` since 1970 that is nearest to a time, in seconds.

    Examples
    --------
    >>> str(nearest(np.datetime64("2020-02-07T13:05:04"), np.timedelta64(1, "m")))
    '2020-02-07T13:05:00'
    """
    seconds = step.astype("timedelta64[s]")
    since = time.astype("datetime64[s]") - EPOCH
    return EPOCH + (since + seconds // 2) // seconds * seconds


def _polar_time(header: Header, step: np.timedelta64 | None) -> np.datetime64:
    if not header.single_sweep:
        return nearest(header.times[0], step or MINUTE)
    interval = (step or VOLUME).astype("timedelta64[s]")
    since = header.times[0].astype("datetime64[s]") + GRACE - EPOCH
    return EPOCH + since // interval * interval


def _distance(scan: Scan) -> np.timedelta64:
    return abs(scan.scanned - scan.time)
