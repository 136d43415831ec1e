"""Heartbeats: which workers the scheduler has not heard of for a while."""

from __future__ import annotations

import time
from collections.abc import Mapping

from daskdl.cluster.settings import seconds

#: How many heartbeats at the least a worker has to miss.
MISSED = 5
#: Seconds that pass between two looks at the most, as they are counted. More is the fault of who
#: looks, or of a scheduler that was busy and has not yet read what workers have sent.
COUNTED = 4.0


class Heartbeats:
    """Heartbeats of each worker, from one look at the scheduler to the next.

    Only that one comes after another is of interest, so that no clocks are compared.

    A worker is silent when it has sent none for ``daskdl.heartbeat-timeout`` while another has. One
    that is heard of again was slow, not dead, and is not taken for silent any more.

    Attributes
    ----------
    silent : dict of str to float
        Workers, and for how many seconds they have been silent.
    """

    def __init__(self) -> None:
        self.silent: dict[str, float] = {}
        self._heard: dict[str, tuple[float, float]] = {}
        self._slow: set[str] = set()
        self._looked = time.monotonic()

    def look(self, last_seen: Mapping[str, float], now: float) -> None:
        """Take in when the scheduler heard of each worker last.

        Parameters
        ----------
        last_seen : mapping of address to seconds
            By the scheduler's clock.
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
        if len(quiet_ones) == len(self._heard):  # then it is the scheduler, or the network
            quiet_ones = {}
        self.silent = {a: quiet for a, quiet in quiet_ones.items() if a not in self._slow}


def interval(workers: int) -> float:
    """Return the seconds between two heartbeats of a worker, of so many, or a little more."""
    return 1 + workers / 200
