"""Relay: words from a gang's first member to all others, and what they answer back to it.

The driver speaks to the first member alone, so that a group costs it as much with 256 members as
with two. What it says goes down a tree of the connections that members have anyway, and results
come up: each member hands on its own and those of the members below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.communicator import Exchange
from daskdl.collective.plan import Plan
from daskdl.kernels.runtime.memory import empty

Array = NDArray[Any]


@dataclass(frozen=True)
class Relay:
    """One member's place.

    Attributes
    ----------
    parent : int, optional
        The member above; the first one has none.
    children : list of int
        Those right below.
    below : list of int
        Itself, and then for each child all that is below it.
    """

    parent: int | None
    children: list[int]
    below: list[int]


def relays(plans: Sequence[Plan]) -> list[Relay]:
    """Return the place of every member, the nearest to the first over connections that it has."""
    parents: dict[int, int | None] = {0: None}
    queue = [0]
    for member in queue:  # which grows meanwhile
        for peer in plans[member].peers:
            if peer not in parents:
                parents[peer] = member
                queue.append(peer)
    children: dict[int, list[int]] = {member: [] for member in queue}
    below: dict[int, list[int]] = {}
    for member in queue[1:]:
        children[parents[member] or 0].append(member)
    for member in reversed(queue):
        below[member] = [member, *(m for child in children[member] for m in below[child])]
    return [Relay(parents[m], children[m], below[m]) for m in range(len(plans))]


def passed_down(exchange: Exchange, relay: Relay, t: int, note: Any = None) -> Any:
    """Return the first member's note, which is plain data and no list, and hand it on.

    Raises
    ------
    BrokenGangError
        As all that goes over an exchange.
    """
    if relay.parent is not None:
        note = exchange.swap(t, "word", {}, {relay.parent: ()})[relay.parent]
    exchange.swap(t, "word", dict.fromkeys(relay.children, (note, ())), {})
    return note


def passed_up(
    exchange: Exchange,
    all_relays: Sequence[Relay],
    rank: int,
    t: int,
    own: Sequence[Array],
    lengths: Sequence[int],
    times: Array,
    note: bytes,
) -> tuple[list[list[Array]], Array, list[bytes]] | None:
    """Hand all members' arrays and notes on to the first one.

    Parameters
    ----------
    exchange, all_relays, rank, t :
        By whom, and in which iteration.
    own : sequence of (lengths[rank],)
        This member's arrays.
    lengths : sequence of int
        Of each array, by member.
    times : (K, 3)
        Shortest, longest and shortest count of those of the members below and the own.
    note : bytes

    Returns
    -------
    triple, or None for all but the first member
        The arrays of each member, by rank, the times, and all notes in no order.

    Raises
    ------
    BrokenGangError
    """
    relay = all_relays[rank]
    room = {
        child: [
            *(empty(sum(lengths[m] for m in all_relays[child].below), a.dtype.type) for a in own),
            np.empty_like(times),
        ]
        for child in relay.children
    }
    heard = exchange.swap(t, "result", {}, room)
    notes = [note, *(n for child in relay.children for n in heard[child]["notes"])]
    for arrays in room.values():
        longest = np.maximum(times[:, 1], arrays[-1][:, 1])
        times = np.minimum(times, arrays[-1])
        times[:, 1] = longest
    joined = [
        np.concatenate([a, *(room[child][i] for child in relay.children)]) if room else a
        for i, a in enumerate(own)
    ]
    if relay.parent is not None:
        exchange.swap(t, "result", {relay.parent: ({"notes": notes}, [*joined, times])}, {})
        return None
    ends = np.cumsum([lengths[m] for m in relay.below])[:-1]
    parts = [np.split(array, ends) for array in joined]
    place = {m: i for i, m in enumerate(relay.below)}
    return [[p[place[m]] for p in parts] for m in range(len(all_relays))], times, notes
