"""``python -m ci.bench.search``: nearest binary codes, beside faiss's IndexBinaryFlat.

Random codes, which are the worst for a search that leaves out what is far: all are about as far.
Both look at every code on the same number of threads; the distances found are the same. Ratios
above 1 are ours.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import faiss
import numpy as np

from ci.bench.timing import HEADER, Case, Row, line, means, race, write_json
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.search import HammingIndex


def cases(codes: int, bits: int, queries: list[int], nearest: list[int]) -> list[Case]:
    """Return the searches, after a look at whether both find the same distances."""
    rng = np.random.default_rng(0)
    held = rng.integers(0, 256, (codes, bits // 8), dtype=np.uint8)
    ours, peer = HammingIndex(held), faiss.IndexBinaryFlat(bits)
    peer.add(held)
    found = []
    for count in queries:
        asked = rng.integers(0, 256, (count, bits // 8), dtype=np.uint8)
        for k in nearest:
            same = np.array_equal(ours.search(asked, k)[0], peer.search(asked, k)[0])
            if not same:
                raise AssertionError(f"{count} queries, k={k}: other distances than faiss's")
            found.append(
                Case(
                    f"{codes:,} codes of {bits} bits/{count} queries/k={k}",
                    lambda asked=asked, k=k: ours.search(asked, k),  # type: ignore[misc]
                    {"faiss": lambda asked=asked, k=k: peer.search(asked, k)},  # type: ignore[misc]
                )
            )
    return found


def main() -> None:
    """Race them, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codes", type=int, default=10_000_000)
    parser.add_argument("--bits", type=int, nargs="+", default=[256, 64])
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 16, 100])
    parser.add_argument("--nearest", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each case")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    rows = []
    print(HEADER)
    with thread_budget(options.threads):
        for bits in options.bits:
            for case in cases(options.codes, bits, options.queries, options.nearest):
                rows.append(Row.of(case.name, options.threads, race(case, options.seconds)))
                print(line(rows[-1]), flush=True)
    print(*means(rows), sep="\n")
    if options.json:
        write_json(options.json, rows)


if __name__ == "__main__":
    main()
