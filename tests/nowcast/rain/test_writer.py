"""The writer: every state on disk can be read, also after a kill and while frames come late."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from daskdl.files import previous
from nowcast.rain import writer
from nowcast.rain.cf import TIME_ENCODING
from nowcast.rain.store import open_rain, write_zarr
from tests.nowcast.rain import series
from tests.nowcast.rain.series import frame


def new_store(path, *minutes: int) -> None:
    series.new_store(path, *map(frame, minutes))


def contents(path) -> dict[int, float]:
    with open_rain(path) as dataset:
        start = np.datetime64("2020-02-07T13:00", "ns")
        minutes = ((dataset["time"].values - start) / np.timedelta64(1, "m")).astype(int)
        rain = dataset["rain_rate"].values
        assert np.isnan(rain[:, 0, 0]).all()
        return dict(zip(minutes.tolist(), rain[:, 1, 1].tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 16, 17, 33])
def test_frames_are_appended_in_order(tmp_path, count):
    path = tmp_path / "rain.zarr"
    new_store(path, *range(0, 5 * count, 5))
    assert contents(path) == {5 * i: 5.0 * i for i in range(count)}
    writer.append(path, [frame(1000)])
    assert len(contents(path)) == count + 1


@pytest.mark.slow
def test_times_fill_several_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "TIMES_A_CHUNK", 8)
    path = tmp_path / "rain.zarr"
    new_store(path, *range(1, 50))
    writer.append(path, [frame(60), frame(61)])
    assert list(contents(path)) == [*range(1, 50), 60, 61]
    writer.append(path, [frame(0), frame(55)])
    assert list(contents(path)) == [*range(50), 55, 60, 61]
    assert len(list((path / "time" / "c").iterdir())) == 7


@pytest.mark.slow
def test_an_open_store_shows_the_frames_that_it_had_when_opened(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 10, 20, 30)
    pickled = pickle.loads(pickle.dumps(xr.open_zarr(path)))
    opened = [([10, 20, 30], open_rain(path)), ([10, 20, 30], xr.open_zarr(path, chunks=None))]
    opened.append(([10, 20, 30], pickled))
    for late in ([5, 15], [25], [0, 1, 2, 35]):
        writer.append(path, [frame(minute) for minute in late])
        for minutes, dataset in opened:
            assert dataset["rain_rate"].values[:, 1, 1].tolist() == minutes
        opened.append((sorted({*opened[-1][0], *late}), open_rain(path)))


@pytest.mark.slow
def test_other_programs_see_each_frame_under_its_time(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 10, 20, 30)
    writer.append(path, [frame(25), frame(15), frame(5)])
    with xr.open_zarr(path) as opened:
        pairs = zip(opened["time"].values, opened["rain_rate"].values[:, 1, 1], strict=True)
        assert all(time == frame(int(rain))[0] for time, rain in pairs)
        xr.testing.assert_equal(opened.sortby("time").load(), open_rain(path).load())


@pytest.mark.slow
def test_a_frame_that_is_all_missing_is_kept(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 10)
    writer.append(path, [frame(20, np.nan), frame(30), frame(15)])
    after = contents(path)
    assert np.isnan(after.pop(20))
    assert after == {10: 10, 15: 15, 30: 30}


def test_a_time_that_exists_is_refused(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 10)
    with pytest.raises(DataError, match=r"rain\.zarr: expected a frame of each time, found two of"):
        writer.append(path, [frame(20), frame(30), frame(20)])
    assert list(contents(path)) == [10, 20, 30]


def test_an_exception_keeps_what_came_before_it(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 0)

    def frames():
        yield frame(5)
        raise RuntimeError("the cluster is gone")

    with pytest.raises(RuntimeError, match="gone"):
        writer.append(path, frames())
    assert list(contents(path)) == [0, 5]


def _append_and_die(path, after: int) -> None:
    def frames():
        for minute in range(5, 1000, 5):
            if minute == 5 * after:
                os.kill(os.getpid(), signal.SIGKILL)
            yield frame(minute)

    writer.append(path, frames())


def _killed(path, after: int) -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=_append_and_die, args=(path, after)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.kills
@pytest.mark.parametrize("after", [2, 17, 20])
def test_a_killed_writer_leaves_a_store_that_is_read_and_appended_to(tmp_path, after):
    path = tmp_path / "rain.zarr"
    new_store(path, 0)
    _killed(path, after)
    minutes = list(contents(path))
    assert len(minutes) == 1 + (after - 1) // writer.COMMIT_FRAMES * writer.COMMIT_FRAMES
    writer.append(path, [frame(minutes[-1] + 5, 7.0), frame(minutes[-1] + 10, 8.0)])
    after_it = contents(path)
    assert list(after_it) == [*minutes, minutes[-1] + 5, minutes[-1] + 10]
    assert after_it[minutes[-1] + 5] == 7.0


@pytest.mark.kills
def test_data_of_a_killed_writer_do_not_fill_a_frame_that_is_all_missing(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 0)
    _killed(path, 3)
    assert (path / "rain_rate" / "c" / "1").is_dir()  # of a frame that no reader sees
    writer.append(path, [frame(7, np.nan)])
    assert np.isnan(contents(path)[7])


def test_a_swap_that_was_killed_is_finished(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 0)
    path.rename(previous(path))
    (tmp_path / ".rain.zarr.12345678.partial").mkdir()
    with writer.locked(path):
        assert list(contents(path)) == [0]
    assert [entry.name for entry in tmp_path.iterdir()] == ["rain.zarr"]


def test_two_writers_at_once_are_refused(tmp_path):
    path = tmp_path / "rain.zarr"
    with (
        writer.locked(path),
        pytest.raises(
            DataError,
            match=rf"rain\.zarr: expected to be its only writer, .* \(process {os.getpid()} on ",
        ),
        writer.locked(path),
    ):
        pass
    with writer.locked(path):  # again, after it
        pass


@pytest.mark.slow
def test_a_store_of_other_chunks_is_refused(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 0, 5)
    with open_rain(path) as dataset:
        whole = dataset.load()
    for variable in whole.variables.values():
        variable.encoding.clear()
    other = tmp_path / "other.zarr"
    with pytest.warns(UserWarning, match="Consolidated"):
        whole.chunk(time=2).to_zarr(other, zarr_format=3, consolidated=True)
    with pytest.raises(DataError, match=r"other\.zarr: expected a store made by nowcast ingest"):
        writer.append(other, [frame(10)])


def test_history_grows_by_a_line_a_run(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 0, 5)
    writer.append(path, [frame(10)])
    with open_rain(path) as dataset:
        lines = dataset.attrs["history"].splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "added 1 scans",
        "added 1 scans",
        "created",
    ]


def test_scan_times_stay_with_their_frames_and_old_stores_have_none(tmp_path):
    path = tmp_path / "rain.zarr"
    new_store(path, 10, 5)
    writer.append(path, [frame(0), frame(20)])
    with open_rain(path) as rain:
        late = rain["scan_time"].values - rain["time"].values
        np.testing.assert_array_equal(late, np.timedelta64(7, "s"))
    old = tmp_path / "old.zarr"
    with open_rain(path) as rain:
        write_zarr(rain.drop_vars("scan_time"), old, encoding={"time": TIME_ENCODING})
    writer.append(old, [frame(30)])
    with open_rain(old) as rain:
        assert rain.sizes["time"] == 5
        assert "scan_time" not in rain
