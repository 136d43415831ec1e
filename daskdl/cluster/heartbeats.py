"""Heartbeats: find workers that have sent none to the scheduler for a while."""

from __future__ import annotations

import time
from collections.abc import Mapping

from daskdl.cluster.settings import seconds

#: Least number of heartbeats that a silent worker has missed.
MISSED = 5
#: Longest time between two looks that counts, in seconds. A longer one means that this process was
#: late, or that a busy scheduler has not yet read the workers' messages.
COUNTED = 4.0


class Heartbeats:
    """Heartbeats of each worker, from one look at the scheduler to the next.

    It only checks whether the time of the last heartbeat changes, so that clocks need not agree.

    A worker is silent when it has sent none for ``daskdl.heartbeat-timeout`` while another has. If
    it sends one again, it was slow, not dead, and never counts as silent again.

    Attributes
    ----------
    silent : dict of str to float
        Silent workers, and the seconds of their silence.
    """

    def __init__(self) -> None:
        self.silent: dict[str, float] = {}
        self._heard: dict[str, tuple[float, float]] = {}
        self._slow: set[str] = set()
        self._looked = time.monotonic()

    def look(self, last_seen: Mapping[str, float], now: float) -> None:
        """Update by the times of the last heartbeat of each worker.

        Parameters
        ----------
        last_seen : mapping of address to seconds
            Times by the scheduler's clock.
        now : float
            ``time.monotonic()``.
        """
        passed, self._looked = min(now - self._looked, COUNTED), now
        before, self._heard = self._heard, {}
        for address, at in last_seen.items():
            then, quiet = before.get(address, (at, -passed))
            self._heard[address] = at, quiet + passed if at == then else 0.0
        limit = max(seconds("heartbeat-timeout"), MISSED * interval(len(last_seen)))
        quiet_ones = {a: quiet for a, (_, quiet) in self._heard.items() if quiet >= limit}
        self._slow |= self.silent.keys() & self._heard.keys() - quiet_ones.keys()
        if len(quiet_ones) == len(self._heard):  # caused by the scheduler or the network
            quiet_ones = {}
        self.silent = {a: quiet for a, quiet in quiet_ones.items() if a not in self._slow}


def interval(workers: int) -> float:
    """Return the seconds between two heartbeats of each of ``workers``, rounded up."""
    return 1 + workers / 200
