"""The table of a benchmark: one line a case and number of threads, ratios above 1 are ours."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ci.bench.timing import Times


@dataclass(frozen=True)
class Row:
    """One case at one number of threads."""

    name: str
    threads: int
    ours_ms: float
    peer_ms: float
    ratio: float  #: peer / ours of the least times
    ours_median_ms: float
    peer_median_ms: float
    peer: str  #: the peer's fastest variant

    @classmethod
    def of(cls, name: str, threads: int, times: dict[str, Times]) -> Row:
        """Return the row of what :func:`ci.bench.timing.race` measured."""
        ours = times["ours"]
        peer = min((key for key in times if key != "ours"), key=lambda key: times[key].least)
        other = times[peer]
        return cls(
            name, threads, ours.least, other.least, other.least / ours.least, ours.median,
            other.median, peer,
        )  # fmt: skip


def line(row: Row) -> str:
    """Return a row for people."""
    return (
        f"{row.name:<52} {row.threads:>2} {row.ours_ms:>9.3f} {row.peer_ms:>9.3f} "
        f"{row.ratio:>6.2f} {row.peer_median_ms / row.ours_median_ms:>6.2f}  {row.peer}"
    )


HEADER = (
    f"{'case':<52} {'th':>2} {'ours ms':>9} {'peer ms':>9} {'ratio':>6} {'median':>6}  peer's best"
)


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def means(rows: Sequence[Row]) -> list[str]:
    """Return a line with the geometric mean of each family and number of threads."""
    groups: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        groups.setdefault((row.name.split("/")[0], row.threads), []).append(row.ratio)
    return [
        f"{family:<52} {threads:>2} {'':>9} {'':>9} {geometric_mean(ratios):>6.2f} "
        f"{min(ratios):>6.2f}  geometric mean, least of {len(ratios)}"
        for (family, threads), ratios in groups.items()
    ]


def write_json(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as a list of objects."""
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
