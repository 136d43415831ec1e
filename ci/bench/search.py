"""``python -m ci.bench.search``: nearest binary codes, against faiss's IndexBinaryFlat.

Random codes are the worst case for a search that skips far ones: all are about equally far. Both
look at every code on the same number of threads, and find the same distances. With a ratio above 1
ours is faster.
"""

from __future__ import annotations

from collections.abc import Iterator

import faiss
import numpy as np

from ci.bench.timing import Case, options_of, raced
from daskdl.kernels.runtime.threads import threads
from daskdl.search import HammingIndex


def cases(codes: int, bits: int, queries: list[int], nearest: list[int]) -> Iterator[Case]:
    """Yield the searches, after a check that both find the same distances."""
    faiss.omp_set_num_threads(threads())
    rng = np.random.default_rng(0)
    stored = rng.integers(0, 256, (codes, bits // 8), dtype=np.uint8)
    ours, peer = HammingIndex(stored), faiss.IndexBinaryFlat(bits)
    peer.add(stored)
    for count in queries:
        batch = rng.integers(0, 256, (count, bits // 8), dtype=np.uint8)
        for k in nearest:
            if not np.array_equal(ours.search(batch, k)[0], peer.search(batch, k)[0]):
                raise AssertionError(f"{count} queries, k={k}: other distances than faiss's")
            yield Case(
                f"{codes:,} codes of {bits} bits/{count} queries/k={k}",
                lambda batch=batch, k=k: ours.search(batch, k),  # type: ignore[misc]
                {"faiss": lambda batch=batch, k=k: peer.search(batch, k)},  # type: ignore[misc]
            )


def main() -> None:
    """Race the searches, and print a line for each."""
    parser = options_of(__doc__, seconds=2.0, threads="1")
    parser.add_argument("--codes", type=int, default=10_000_000)
    parser.add_argument("--bits", type=int, nargs="+", default=[256, 64])
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 16, 100])
    parser.add_argument("--nearest", type=int, nargs="+", default=[10, 100])
    options = parser.parse_args()

    def all_cases() -> Iterator[Case]:
        for bits in options.bits:
            yield from cases(options.codes, bits, options.queries, options.nearest)

    raced(options, all_cases)


if __name__ == "__main__":
    main()
