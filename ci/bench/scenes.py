"""Speed of a scene by tiles beside the whole in one pass and beside dask.array.map_overlap.

python -m ci.bench.scenes [--side 2048] [--tile 512]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import dask
import dask.array as da
import numpy as np

from daskdl import nn, ops


def _block(channels: int, filters: int, seed: int) -> nn.Module:
    first = nn.Conv2d(channels, filters, 3, padding=1, seed=seed)
    second = nn.Conv2d(filters, filters, 3, padding=1, seed=seed + 1)
    return nn.Sequential(first, nn.BatchNorm(filters), nn.ReLU(), second, nn.ReLU())


class UNet(nn.Module):
    """A U-Net of three resolutions: it sees 22 cells to each side."""

    def __init__(self) -> None:
        self.one, self.two, self.three = _block(3, 16, 0), _block(16, 32, 2), _block(32, 64, 4)
        self.pool = nn.MaxPool2d(2)
        self.up_two = nn.ConvTranspose2d(64, 32, 2, stride=2, seed=6)
        self.up_one = nn.ConvTranspose2d(32, 16, 2, stride=2, seed=7)
        self.last_two, self.last_one = _block(64, 32, 8), _block(32, 16, 10)
        self.head = nn.Conv2d(16, 4, 1, seed=12)

    def forward(self, x):  # type: ignore[no-untyped-def]
        """Return scores (N, H, W, 4)."""
        one = self.one(x)
        two = self.two(self.pool(one))
        y = self.up_two(self.three(self.pool(two)))
        y = self.up_one(self.last_two(ops.concatenate(y, two)))
        return self.head(self.last_one(ops.concatenate(y, one)))


def main() -> None:
    """Print pixels a second, each way three times in turn, the fastest counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=2048)
    parser.add_argument("--tile", type=int, default=512)
    options = parser.parse_args()
    model, side, tile = UNet(), options.side, options.tile
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
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    results = {}
    with dask.config.set(scheduler="synchronous"):
        for _ in range(3):
            for name, compute in ways.items():
                start = time.perf_counter()
                results[name] = compute()
                seconds[name].append(time.perf_counter() - start)
    whole = results["whole in one pass"]
    for name, runs in seconds.items():
        speed = side**2 / min(runs) / 1e6
        share = min(seconds["whole in one pass"]) / min(runs)
        apart = float(np.abs(results[name] - whole).max())
        print(f"{name:20} {speed:6.2f} Mpixel/s  {share:5.2f} of whole  differs by {apart:.1e}")


if __name__ == "__main__":
    main()
