"""Messages between two ranks: a head that says whose and which, a note, and arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from daskdl.collective.errors import BrokenGangError

Array = NDArray[np.generic]

#: Run, attempt, step and kind of a message.
Head = tuple[str, int, int, str]

#: By peer, a note (plain data) and arrays.
Sends = Mapping[int, tuple[Any, Sequence[Array]]]

#: From a message's note to the arrays that its own are written to.
Room = Callable[[Any], Sequence[Array]]

#: Poll interval (s): how often a waiting rank checks whether the attempt was ended.
POLL = 0.1


class PeerError(Exception):
    """A peer is lost by an exception; it is late if the exception is None."""

    def __init__(self, peer: int, error: BaseException | None) -> None:
        super().__init__(peer, error)
        self.peer, self.error = peer, error


class Transport(Protocol):
    """A way to exchange messages with peers."""

    def swap(self, head: Head, sends: Sends, receives: Mapping[int, Room]) -> dict[int, Any]:
        """Send messages to some peers, and return the notes of others' messages.

        Raises
        ------
        PeerError
        """

    def end(self, head: Head, why: str) -> None:
        """Tell the peers why the attempt ends."""

    def close(self) -> None:
        """Close the connections; messages that were sent still arrive."""


def check(received: Sequence[Any], head: Head, note: Any) -> None:
    """Raise BrokenGangError unless a message is the one expected."""
    if tuple(received[:2]) == head[:2] and received[3] == "end":
        raise BrokenGangError(str(note))
    if tuple(received) != head:
        raise BrokenGangError(f"it sent {tuple(received)} where {head} was expected")
