"""Damaged copies of radar files, and the outcome of reading each.

They are read as an ingest reads them. The outcome is "crashed" where a library died or hung.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nowcast.ingest.rain_map import Failure, try_header, try_scan
from nowcast.ingest.scan import group_scans
from nowcast.ingest.settings import IngestSettings
from nowcast.ingest.sources import target_grid
from nowcast.radar.header import Site

SETTINGS = IngestSettings.of(site=Site(50.0, 5.0), size=32, spacing=8000.0)


def mutants(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield damaged copies: cut short, bits and bytes flipped, zeros, pieces swapped or put in."""
    random = np.random.default_rng(seed)
    for number in range(count):
        data = bytearray(content)
        # Headers are small and decide most: half of the damage goes there.
        reach = min(len(data), 4096) if random.random() < 0.5 else len(data)

        def place(size: int = 1, reach: int = reach) -> int:
            return int(random.integers(0, max(reach - size, 1)))

        match number % 6:
            case 0:
                del data[place() :]
            case 1:
                for _ in range(int(random.integers(1, 4))):
                    data[place()] ^= 1 << int(random.integers(8))
            case 2:
                for _ in range(int(random.integers(1, 40))):
                    data[place()] = int(random.integers(256))
            case 3:
                size = int(random.integers(1, 600))
                at = place(size)
                data[at : at + size] = bytes(len(data[at : at + size]))
            case 4:
                size = int(random.integers(1, max(2, min(2000, len(data) // 3))))
                a, b = sorted((place(2 * size), place(2 * size)))
                if b >= a + size:
                    data[a : a + size], data[b : b + size] = (
                        data[b : b + size],
                        data[a : a + size],
                    )
                else:
                    data[a : a + size] = b"\xff" * size
            case _:
                size = int(random.integers(1, 200))
                at = place()
                data[at:at] = random.bytes(size)
        yield bytes(data)


def outcomes(
    contents: Sequence[bytes], suffix: str, folder: Path, count: int, seed: int = 0
) -> Counter[str]:
    """Return the number of mutants with each outcome, of ``count`` in all.

    Raises
    ------
    AssertionError
        If a mutant shows a bug of this program, or gives rain below 0 or without bound.
    """
    counts: Counter[str] = Counter()
    for number, content in enumerate(contents):
        share = count // len(contents) + (number < count % len(contents))
        for i, mutant in enumerate(mutants(content, share, seed + number)):
            path = folder / f"{number}-{i:04d}{suffix}"
            path.write_bytes(mutant)
            outcome = outcome_of(path)
            assert not outcome.startswith("wrong"), f"{path}: {outcome}"
            counts[outcome] += 1
            path.unlink()
    return counts


def outcome_of(path: Path) -> str:
    """Return "read", "no header", "no scan", "crashed" or "wrong: why" for a file."""
    header = try_header(path)
    if isinstance(header, Failure):
        return _refused(header, "no header")
    scans, _ = group_scans([header])
    grid = target_grid(header, SETTINGS)
    result = try_scan(scans[0], grid, SETTINGS)
    if isinstance(result, Failure):
        return _refused(result, "no scan")
    rain = result.rain
    if rain.shape != grid.shape or rain.dtype != np.float32:
        return f"wrong: {rain.dtype} {rain.shape}"
    if np.nanmin(rain, initial=0) < 0 or np.isinf(rain).any():
        return "wrong: rain below 0 or without bound"
    return "read"


def _refused(failure: Failure, outcome: str) -> str:
    if failure.ours:
        return f"wrong: {failure.reason}"
    return "crashed" if "crashed" in failure.reason else outcome
