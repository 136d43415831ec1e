"""An epoch over a zarr store larger than the memory of the workers: ``python -m ci.bench.data``.

Each of two worker processes has a memory limit, at which Dask's nanny ends it; the store is
``--times`` as large as both limits together. The peak memory of a worker is the operating system's
figure. The same samples are then read from the store without any training, block by block in one
process: the time of an epoch beyond its share of that is the cost of streaming.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from daskdl.data import SampleSet
from daskdl.nn import Linear
from daskdl.nn.losses import MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer

#: float32 numbers in a sample.
WIDTH = 4096


def write(path: Path, samples: int) -> None:
    """Write samples, chunk by chunk."""
    import zarr

    group = zarr.open_group(path, mode="w")
    options = {"chunks": (256, WIDTH), "compressors": None}
    x = group.create_array("x", shape=(samples, WIDTH), dtype="f4", **options)
    group["y"] = np.zeros((samples, 1), np.float32)
    block = np.random.default_rng(0).random((4096, WIDTH), np.float32)
    for start in range(0, samples, 4096):
        stop = min(start + 4096, samples)
        x[start:stop] = block[: stop - start]


def run(limit: int, times: float, buffer: int, folder: Path) -> None:
    """Write a store, train an epoch over it, read it, and print time and memory."""
    from distributed import Client, LocalCluster

    workers = 2
    samples = int(times * workers * limit / (4 * WIDTH))
    write(folder / "x.zarr", samples)
    data = SampleSet.from_zarr(folder / "x.zarr", x="x", y="y")
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.run(_train)  # so that each worker has imported and compiled everything
        before = list(client.run(_peak).values())
        began = time.perf_counter()
        Trainer(Linear(WIDTH, 1), MSELoss(), SGD(1e-4)).fit(
            data.stream(workers, buffer), epochs=1, batch_size=512, client=client, progress=False
        )
        epoch = time.perf_counter() - began
        peak = list(client.run(_peak).values())
        spilled = sum(client.run(_spilled).values())
    began = time.perf_counter()
    for recipe in data.recipes:
        recipe.load()
    read = time.perf_counter() - began
    size = samples * 4 * WIDTH / 1e6
    largest, first = (" and ".join(f"{mb:.0f}" for mb in some) for some in (peak, before))
    print(f"store {size:.0f} MB, {size * 1e6 / workers / limit:.1f} x the limits of {workers} "
          f"workers of {limit / 1e6:.0f} MB each")  # fmt: skip
    print(f"epoch of {samples:,} samples {epoch:.1f} s ({size / epoch:.0f} MB/s), "
          f"reading alone in one process {read:.1f} s")  # fmt: skip
    print(f"resident at most {largest} MB, before the epoch {first} MB, streams may hold "
          f"{buffer / 1e6:.0f} MB each; spilled {spilled:.0f} MB")  # fmt: skip


def _train() -> None:
    from daskdl.data import SampleSet

    few = SampleSet.from_arrays(x=np.zeros((64, WIDTH), np.float32), y=np.zeros((64, 1)))
    Trainer(Linear(WIDTH, 1), MSELoss(), SGD(1e-4)).fit(few, epochs=1, progress=False, client=False)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _spilled(dask_worker: Any) -> float:
    total = getattr(dask_worker.data, "spilled_total", None)
    return 0.0 if total is None else float(total.disk) / 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m ci.bench.data", description=__doc__)
    parser.add_argument("--limit", type=int, default=600, help="MB of a worker")
    parser.add_argument("--times", type=float, default=4, help="size of the store in all limits")
    parser.add_argument("--held", type=int, default=64, help="MB that a stream may hold")
    parser.add_argument("--folder", type=Path, help="where the store is written for the while")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run(options.limit * 10**6, options.times, options.held * 10**6, Path(folder))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
