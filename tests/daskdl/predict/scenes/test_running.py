"""A scene's chunks are read once; workers have parts of it, and stop when the call does."""

import os
import time
from collections import Counter

import numpy as np
import pytest
import zarr

from daskdl import nn
from daskdl.predict.scenes import running
from daskdl.predict.scenes import scene as scene_of
from tests.daskdl.clusters import small_client

RNG = np.random.default_rng(0)
MODEL = nn.Conv2d(1, 2, 3, padding=1, seed=0)
OPTIONS = {"tile": {0: 64, 1: 64}, "overlap": 16}


class _Store(zarr.storage.LocalStore):
    """Writes the chunks that are read, and the process that reads, to a file next to it."""

    async def get(self, key, *options, **more):
        """Return the bytes of a key."""
        if "c/" in key:
            with self.root.with_suffix(".reads").open("a") as file:
                file.write(f"{os.getpid()} {key}\n")
        return await super().get(key, *options, **more)

    def reads(self):
        """Return a count of chunks for each number of reads, and the processes; forget both."""
        file = self.root.with_suffix(".reads")
        pids, keys = zip(*(line.split() for line in file.read_text().splitlines()), strict=True)
        file.unlink()
        return Counter(Counter(keys).values()), {*pids}


def _stored(folder, shape, chunks):
    scene = RNG.normal(size=shape).astype(np.float32)
    return scene, zarr.create_array(_Store(folder / "scene"), data=scene, chunks=chunks)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(("room", "most"), [(26, 1), (18, 2), (1, 9)])
def test_a_chunk_is_read_once_and_at_the_border_of_strips_twice(
    times, room, most, tmp_path, monkeypatch
):
    scene, stored = _stored(tmp_path, (500, 900, 2, 1), (100, 100, times, 1))
    # A row of windows touches 2 x 9 chunks and keeps 2 x 4 more; a strip of half a row 2 x 5.
    monkeypatch.setattr(scene_of, "room_for_chunks", lambda client: room * times * 40_000)
    options = {**OPTIONS, "channel": 3}
    whole = MODEL.predict(scene, **options)
    result = MODEL.predict(stored, out=str(tmp_path / "out"), **options)
    np.testing.assert_array_equal(result[:], whole)
    reads, _ = stored.store.reads()
    assert max(reads) == (most if room > 1 else most * times)
    assert room == 1 or reads[1] >= 0.7 * reads.total()
    result.store_path.store.root.joinpath("c", "3", "7", "1", "0").unlink()
    again = MODEL.predict(stored, out=str(tmp_path / "out"), **options)
    np.testing.assert_array_equal(again[:], whole)
    assert max(stored.store.reads()[0]) == max(reads)


@pytest.mark.slow
def test_workers_have_parts_of_their_own_and_one_that_joins_takes_half_of_one(
    tmp_path, monkeypatch
):
    scene, stored = _stored(tmp_path, (2000, 300, 1), (100, 100, 1))
    monkeypatch.setattr(running, "LOOK", 0.0)
    advance, tiles = running.Meter.advance, []
    with small_client(2, default=True, processes=True) as client:

        def joined(meter, cells):
            tiles.append(cells)
            if len(tiles) == 20:
                client.cluster.scale(3)
                client.wait_for_workers(3)
            advance(meter, cells)

        monkeypatch.setattr(running.Meter, "advance", joined)
        result = MODEL.predict(stored, out=str(tmp_path / "out"), **OPTIONS)
    reads, pids = stored.store.reads()
    assert len(pids) == 3
    assert sum(n * many for n, many in reads.items()) < 2 * reads.total()
    np.testing.assert_array_equal(result[:], MODEL.predict(scene, threads=1, **OPTIONS))


@pytest.mark.slow
def test_an_interrupted_call_leaves_the_cluster_nothing_to_do(tmp_path, monkeypatch):
    def interrupted(meter, cells):
        raise KeyboardInterrupt

    monkeypatch.setattr(running.Meter, "advance", interrupted)
    scene = _stored(tmp_path, (300, 300, 1), (100, 100, 1))[1]
    with small_client(default=True) as client:
        with pytest.raises(KeyboardInterrupt) as error:  # its frames keep their variables
            MODEL.predict(scene, tile={0: 32, 1: 32}, out=tmp_path / "out")
        tasks, until = client.cluster.scheduler.tasks, time.monotonic() + 20
        while any("scene" in str(key) for key in tasks) and time.monotonic() < until:
            time.sleep(0.05)
        assert not [key for key in tasks if "scene" in str(key)]
        assert error.value.__traceback__ is not None
