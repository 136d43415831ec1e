"""Losses: workers whose processes have ended, from the events of scheduler and nannies."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

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
