"""Losses: workers without heartbeats for a while, and workers whose processes have ended."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from daskdl.cluster.settings import seconds

if TYPE_CHECKING:
    from distributed import Client

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


#: Topic of a nanny's events when it ends a process near its memory limit.
FOR_MEMORY = "worker-restart-memory"
#: Advice if no worker arrived, and if workers have ended.
IF_NONE = "start workers and run again, from the checkpoint if there is one"
IF_LOST = (
    "what they computed, such as a function of the samples, may have ended them: try it without a "
    "client, and see the log of the workers"
)


def losses_of(client: Client, addresses: Collection[str]) -> str:
    """Return a part of a sentence about the workers at ``addresses`` that ended unexpectedly.

    It is empty if none ended, or if the scheduler does not answer.
    """
    try:
        # One topic per worker, since the common one may hold events that cannot be sent.
        events = sorted(
            (time, address)
            for address in addresses
            for time, event in client.get_events(address) or ()
            if isinstance(event, dict)
            and event.get("action") == "remove-worker"
            and not event.get("expected")
        )
        restarts = client.get_events(FOR_MEMORY)
    except Exception:  # must not hide the error that is being reported
        return ""
    lost = [address for _, address in events]
    memory = [e.get("rss", 0) for _, e in restarts or () if e.get("worker") in addresses]
    if not lost:
        return ""
    ended = "the process of 1 worker" if len(lost) == 1 else f"the processes of {len(lost)} workers"
    more = ""
    if memory:
        more = (
            f", {len(memory)} of them by their nannies, near the memory limit, at "
            f"{max(memory) / 1e9:.2g} GB; give workers more memory, or smaller batches"
        )
    return f"; {ended} ended meanwhile, at last that of {lost[-1]}{more}"
