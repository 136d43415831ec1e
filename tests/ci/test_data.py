"""The benchmark of data larger than memory: what it writes, and what it says."""

from __future__ import annotations

import numpy as np

from ci.bench.data import WIDTH, Result, write
from daskdl.data import SampleSet


def test_the_store_is_as_large_as_was_asked_for(tmp_path):
    write(tmp_path / "x.zarr", 300)
    samples = SampleSet.from_zarr(tmp_path / "x.zarr", x="x", y="y")
    assert len(samples) == 300
    assert samples.nbytes == 300 * 4 * (WIDTH + 1)
    assert samples.schema == {"x": ((WIDTH,), np.float32), "y": ((1,), np.float32)}


def test_sizes_are_said_beside_each_other():
    said = str(Result(4800, 600, 64, 10, 5, [1, 2], [30, 40], 0, 20, 10))
    assert "4800 MB, 4.0 x the limits of 2 workers of 600 MB" in said
    assert "(240 MB/s)" in said
    assert "at most 30 and 40 MB" in said
