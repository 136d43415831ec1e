"""k-means on a Dask array: every worker sums its own points, and an all-reduce adds these up.

Usage: python examples/kmeans.py [--clusters 5] [--workers 2]
"""

import dask.array as da
import numpy as np

import daskdl
from daskdl.collective import Communicator, run
from daskdl.console import argument_parser, positive, script


def kmeans(comm: Communicator, parts: dict[int, np.ndarray], centres: np.ndarray) -> np.ndarray:
    """Return the centres after ten rounds; ``parts`` are the blocks of this worker by shard."""
    for _ in range(10):
        sums = {}
        for shard, points in parts.items():
            nearest = ((points[:, None] - centres) ** 2).sum(-1).argmin(1)
            member = nearest[:, None] == np.arange(len(centres))
            sums[shard] = np.column_stack([member.T @ points, member.sum(0)])
        total = comm.all_reduce(sums)  # the same bits on any number of workers
        centres = total[:, :-1] / np.maximum(total[:, -1:], 1)
    return centres


def main() -> None:
    """Cluster points around known centres."""
    parser = argument_parser(__doc__)
    parser.add_argument("--clusters", type=positive, default=5)
    parser.add_argument("--workers", type=positive, default=2)
    options = parser.parse_args()
    true = np.random.default_rng(0).uniform(-10, 10, (options.clusters, 2))
    which = da.random.default_rng(1).integers(options.clusters, size=100_000, chunks=10_000)
    points = which.map_blocks(around, true, chunks=(10_000, 2), new_axis=1, dtype=float)
    with daskdl.connect("local", workers=options.workers) as client:
        blocks = list(points.to_delayed().ravel())
        first, *_ = run(client, kmeans, true + 1.0, shards=blocks)
    for centre, fitted in zip(true, first, strict=True):
        print(f"{centre.round(2)} found at {fitted.round(2)}")


def around(which: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return a random point near the centre of each number."""
    return centres[which] + np.random.default_rng(which[:9].sum()).normal(size=(len(which), 2))


if __name__ == "__main__":
    script(main)
