"""Windows of a store that gets new and late frames while it is read, or that is replaced."""

from __future__ import annotations

import multiprocessing
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import DataError
from daskdl.nn import Conv3d, MSELoss
from daskdl.optim import SGD
from daskdl.train import Callback, Trainer
from nowcast.rain import writer
from nowcast.rain.windows import windows
from tests.daskdl.data.epochs import everything
from tests.nowcast.rain import series
from tests.nowcast.rain.series import frames

SPAWN = multiprocessing.get_context("spawn")


def new_store(path: Path, *minutes: int) -> Path:
    return series.new_store(path, *frames(*minutes))


def of_two_hours(path: Path) -> SampleSet:
    """Return the windows of frames ten minutes apart."""
    return windows(path, n_in=2, n_out=1, step=np.timedelta64(10, "m"), partitions=6).stream(2)


def minutes_of(samples: SampleSet) -> list[list[int]]:
    """Return the minutes of each window's frames, which its cells encode."""
    batch = everything(samples)
    both = np.concatenate([batch["x"], batch["y"]], axis=1)
    assert (both == both[:, :, :1, :1]).all()
    return sorted(both[:, :, 0, 0, 0].astype(int).tolist())


def _ingest(path: Path, going: object, enough: object) -> None:
    """Add late and new frames, one commit after another, as cron would."""
    late = iter([m for m in range(1, 120) if m % 10])
    new = iter(range(120, 10_000, 10))
    for minute in late:
        with writer.locked(path):
            writer.append(path, frames(minute, next(new)))
        going.set()
        if enough.is_set():
            return


class Ingests(Callback):
    """Another process that ingests from the first epoch on."""

    def __init__(self, path: Path) -> None:
        self.going, self.enough = SPAWN.Event(), SPAWN.Event()
        arguments = (path, self.going, self.enough)
        self.process = SPAWN.Process(target=_ingest, args=arguments)

    def on_epoch_end(self, trainer: Trainer, epoch: int, logs: dict[str, float]) -> bool:
        if epoch == 0:
            self.process.start()
            assert self.going.wait(120), "the other process has not begun"
        return False


def trained(samples: SampleSet, *callbacks: Callback) -> bytes:
    network = Conv3d(1, 1, (2, 1, 1), seed=1)
    trainer = Trainer(network, MSELoss(), SGD(1e-5), seed=2)
    trainer.fit(samples, epochs=6, batch_size=4, callbacks=callbacks, progress=False, client=False)
    return network.flat.tobytes()


@pytest.mark.slow
def test_training_during_an_ingest_sees_the_store_as_it_was_opened(tmp_path):
    hour = range(0, 120, 10)
    alone = trained(of_two_hours(new_store(tmp_path / "alone.zarr", *hour)))
    path = new_store(tmp_path / "rain.zarr", *hour)
    samples = of_two_hours(path)
    before = minutes_of(samples)
    assert before == [[m, m + 10, m + 20] for m in range(0, 100, 10)]
    ingest = Ingests(path)
    assert trained(samples, ingest) == alone
    ingest.enough.set()
    ingest.process.join()
    assert ingest.process.exitcode == 0
    assert minutes_of(pickle.loads(pickle.dumps(samples))) == before
    later = minutes_of(windows(path, n_in=2, n_out=1, step=np.timedelta64(1, "m")))
    assert [0, 1, 2] in later


@pytest.mark.slow
def test_a_store_that_was_written_anew_is_not_read_as_the_old_one(tmp_path):
    path = new_store(tmp_path / "rain.zarr", 0, 10, 20)
    samples = windows(path, n_in=1, n_out=1, keep_dry=1)
    shutil.rmtree(path)
    new_store(path, 0, 10, 20)
    with pytest.raises(DataError, match=r"rain\.zarr: expected the store that was opened, of id"):
        everything(samples)


@pytest.mark.slow
def test_a_frame_that_has_gone_is_named(tmp_path):
    path = new_store(tmp_path / "rain.zarr", 0, 10, 20)
    samples = windows(path, n_in=1, n_out=1)
    metadata = (path / "zarr.json").read_text()
    shutil.rmtree(path)
    new_store(path, 0, 20, 30)
    identity = (path / "zarr.json").read_text().split('"id": "')[1][:32]
    (path / "zarr.json").write_text(
        (path / "zarr.json").read_text().replace(identity, metadata.split('"id": "')[1][:32])
    )
    with pytest.raises(DataError, match=r"with a frame of 2020-02-07T13:10.*, found none of that"):
        everything(samples)


def test_a_damaged_chunk_is_reported_with_its_store(tmp_path):
    path = new_store(tmp_path / "rain.zarr", 0, 10, 20)
    samples = windows(path, n_in=1, n_out=1)
    chunk = path / "rain_rate" / "c" / "1" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(DataError, match=r"rain\.zarr: expected its chunks as they were .*checksum"):
        everything(samples)
