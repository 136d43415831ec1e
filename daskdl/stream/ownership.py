"""Ownership: which session reads which partition, never two the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from daskdl.stream.records import Partition


def fair(
    partitions: Sequence[Partition], owners: Mapping[Partition, int], sessions: Collection[int]
) -> dict[Partition, int]:
    """Give each session as many partitions as the others, one more or less; few change hands.

    Parameters
    ----------
    partitions : sequence of Partition
    owners : mapping of Partition to session
        Who has it now.
    sessions : collection of int
        Those that can take some; not empty.
    """
    least, more = divmod(len(partitions), len(sessions))
    had = {s: [p for p in partitions if owners.get(p) == s] for s in sessions}
    # Those that have most keep one more.
    order = sorted(sessions, key=lambda s: (-len(had[s]), s))
    room = {s: least + (i < more) for i, s in enumerate(order)}
    found = {p: s for s in order for p in had[s][: room[s]]}
    free = [s for s in order for _ in range(room[s] - min(room[s], len(had[s])))]
    return found | dict(zip((p for p in partitions if p not in found), free, strict=True))


class Ownership:
    """Who may read which partition.

    A partition changes hands in two steps: its session is ordered to let it go, and only when that
    has said so, or can commit no more, another gets it.
    """

    def __init__(self) -> None:
        self.owners: dict[Partition, int] = {}

    def shares(
        self, partitions: Sequence[Partition], sessions: Collection[int]
    ) -> dict[int, tuple[Partition, ...]]:
        """Return what each session is to read now, and take note of it."""
        wanted = fair(partitions, self.owners, sessions) if sessions else {}
        for partition, session in wanted.items():
            self.owners.setdefault(partition, session)
        return {
            s: tuple(p for p, of in wanted.items() if of == s and self.owners[p] == s)
            for s in sessions
        }

    def follows(self, session: int, partitions: Collection[Partition]) -> None:
        """Take note that a session reads these and no others."""
        for partition in [p for p, s in self.owners.items() if s == session]:
            if partition not in partitions:
                del self.owners[partition]

    def lost(self, session: int) -> list[Partition]:
        """Take from a session all that it had, since it can commit no more; return it."""
        had = [p for p, s in self.owners.items() if s == session]
        for partition in had:
            del self.owners[partition]
        return had
