"""Speed of a scene by tiles, against the whole in one pass and dask.array.map_overlap.

python -m ci.bench.scenes [--side 2048] [--tile 512]
python -m ci.bench.scenes --large [--side 20000] [--tile 1000]   # on two workers of 1.5 GB
python -m ci.bench.scenes --reads [--side 4096] [--tile 512]     # of each chunk, on 0 to 3 workers
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import dask
import dask.array as da
import numpy as np
import psutil
import zarr
from distributed import Client, LocalCluster

from ci.bench.timing import turns
from daskdl import nn, ops
from daskdl.models import UNet
from daskdl.predict.scenes import memory


class Small(nn.Module):
    """Two convolutions over levels of grey, uint8, to two scores."""

    def __init__(self) -> None:
        self.one = nn.Conv2d(1, 8, 3, padding=1, seed=0)
        self.two = nn.Conv2d(8, 2, 3, padding=1, seed=1)

    def forward(self, x):  # type: ignore[no-untyped-def]
        """Return scores (N, H, W, 2)."""
        x = ops.multiply(ops.cast(x, dtype=np.float32), np.float32(1 / 255))
        return self.two(ops.relu(self.one(x)))


def large(side: int, tile: int) -> None:
    """Print the memory of each worker before and at its peak, and the speed."""
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        scene = zarr.create_array(
            f"{folder}/scene", shape=(side, side), chunks=(2000,) * 2, dtype="u1"
        )
        for row in range(0, side, 2000):
            scene[row : row + 2000] = draw.integers(0, 255, (min(2000, side - row), side), np.uint8)
        options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "1.5GB"}
        with LocalCluster(dashboard_address=":0", **options) as cluster, Client(cluster) as client:
            workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
            before, peak, ended = [w.memory_info().rss for w in workers], [0, 0], threading.Event()

            def watch() -> None:
                while not ended.wait(0.1):
                    for i, worker in enumerate(workers):
                        peak[i] = max(peak[i], worker.memory_info().rss)

            watching = threading.Thread(target=watch)
            watching.start()
            start = time.perf_counter()
            Small().predict_class(scene, tile={0: tile, 1: tile}, out=f"{folder}/out")
            seconds = time.perf_counter() - start
            ended.set()
            watching.join()
    rises = [f"{b / 1e6:.0f} to {p / 1e6:.0f}" for b, p in zip(before, peak, strict=True)]
    speed = side**2 / seconds / 1e6
    print(f"{speed:.2f} Mpixel/s, {seconds:.0f} s; MB of a worker {', '.join(rises)}")


class Counted(zarr.storage.LocalStore):
    """A store that logs each read of a chunk as a line of a file next to it."""

    async def get(self, key, *options, **more):  # type: ignore[no-untyped-def]
        """Return the bytes of a key."""
        if "c/" in key:
            with self.root.with_suffix(".reads").open("a") as file:
                file.write(f"{os.getpid()}\n")
        return await super().get(key, *options, **more)


def reads(side: int, tile: int, chunk: int = 1000) -> None:
    """Print how often a chunk is read, by all processes and by each, and the speed."""
    model, cells = UNet(3, 4, filters=(16, 32, 64)), {0: tile, 1: tile}
    image = np.random.default_rng(0).normal(size=(side, side, 3)).astype(np.float32)
    share, count = memory.CHUNKS, (-(-side // chunk)) ** 2
    with tempfile.TemporaryDirectory() as folder:
        store = Counted(f"{folder}/scene")
        scene = zarr.create_array(store, data=image, chunks=(chunk, chunk, 3))
        for workers, memory.CHUNKS in ((0, 0.0), (0, share), (1, share), (2, share), (3, share)):
            options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
            with Client(**options) if workers else nullcontext():
                start, cpu = time.perf_counter(), time.process_time()
                model.predict(scene, tile=cells, out=f"{folder}/{workers}{memory.CHUNKS}")
                speed, cpu = (
                    side**2 / (time.perf_counter() - start) / 1e6,
                    time.process_time() - cpu,
                )
            file = store.root.with_suffix(".reads")
            pids = file.read_text().split()
            file.unlink()
            each = ", ".join(f"{pids.count(pid) / count:.2f}" for pid in sorted({*pids}))
            policy = "chunks kept" if memory.CHUNKS else "none kept  "
            print(
                f"{workers or 'no'} workers, {policy}: {len(pids) / count:.2f} reads a chunk, "
                f"{each} of a process, {speed:.2f} Mpixel/s, {cpu:.1f} s of the caller", flush=True,
            )  # fmt: skip


def main() -> None:
    """Print pixels a second of a core; all ways take turns three times, the fastest counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--reads", action="store_true")
    parser.add_argument("--side", type=int)
    parser.add_argument("--tile", type=int)
    options = parser.parse_args()
    options.side = options.side or (20_000 if options.large else 4096 if options.reads else 2048)
    options.tile = options.tile or (1000 if options.large else 512)
    if options.large:
        large(options.side, options.tile)
        return
    if options.reads:
        reads(options.side, options.tile)
        return
    model, side, tile = UNet(3, 4, filters=(16, 32, 64)), options.side, options.tile
    image = np.random.default_rng(0).normal(size=(side, side, 3)).astype(np.float32)
    scene = da.from_array(image, chunks=(tile, tile, 3))

    def by_hand(block: np.ndarray) -> np.ndarray:
        return model.predict(block[None], threads=1)[0]

    depth = {0: 24, 1: 24, 2: 0}
    overlapped = da.overlap.overlap(scene, depth, boundary="none")
    tiles = overlapped.map_blocks(
        by_hand, dtype="float32", chunks=(*overlapped.chunks[:2], (4,)), meta=image[:0]
    )
    hand = da.overlap.trim_overlap(tiles, depth, boundary="none")
    cells = {0: tile, 1: tile}
    ways: dict[str, Callable[[], np.ndarray]] = {
        "whole in one pass": lambda: model.predict(image[None], threads=1)[0],
        "map_overlap by hand": hand.compute,
        "overlap='field'": model.predict(scene, tile=cells, overlap="field").compute,
        "overlap='auto'": model.predict(scene, tile=cells).compute,
        "bands, 'auto'": model.predict(scene, tile={0: tile // 2, 1: side}).compute,
    }
    results: dict[str, np.ndarray] = {}

    def turn(name: str) -> list[float]:
        began = time.process_time()  # not disturbed by other programs
        results[name] = ways[name]()
        return [1000 * (time.process_time() - began)]

    with dask.config.set(scheduler="synchronous"):
        times = turns({name: partial(turn, name) for name in ways}, 3)
    whole = results["whole in one pass"]
    for name, runs in times.items():
        speed = side**2 / runs.least / 1e3
        share = times["whole in one pass"].least / runs.least
        apart = float(np.abs(results[name] - whole).max())
        print(f"{name:20} {speed:6.2f} Mpixel/s  {share:5.2f} of whole  differs by {apart:.1e}")


if __name__ == "__main__":
    main()
