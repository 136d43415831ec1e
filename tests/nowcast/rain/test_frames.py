"""Frames of stores and arrays: checked, counted here or on workers, loaded once for windows."""

from __future__ import annotations

import pickle

import dask
import numpy as np
import pytest
import xarray as xr

import nowcast.rain.frames as frames_module
from daskdl.errors import ClusterError, DataError
from nowcast.rain.frames import FrameSource, WindowRecipe
from tests.daskdl.clusters import small_client
from tests.nowcast.rain.series import instants, series

MINUTES = 5 * np.arange(40)


@pytest.fixture
def store(tmp_path):
    """A store of 40 frames."""
    path = tmp_path / "rain.zarr"
    series(MINUTES).to_zarr(path, zarr_format=3, consolidated=False)
    return path


@pytest.fixture
def workers():
    """A client of two workers, the default of this process."""
    with small_client(2, default=True) as client:
        yield client


def recipe(data, first_frames, n_in=2, n_out=1, tile=(4, 5), at=(0, 0)):
    """Return the recipe of windows that begin with these frames."""
    windows = np.array([[t, *at] for t in first_frames], np.int64)
    return WindowRecipe(FrameSource.open(data, "rain_rate"), windows, n_in, n_out, tile)


KINDS = {
    "path": lambda path: path,
    "array": lambda path: series(MINUTES)["rain_rate"],
    "lazy": lambda path: xr.open_zarr(path, chunks=None, consolidated=False),
    "dask": lambda path: series(MINUTES).chunk(time=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_windows_are_loaded_from_every_kind_of_data(kind, store):
    whole = recipe(KINDS[kind](store), [3, 4, 20, 31], tile=(2, 3), at=(1, 2))
    part = pickle.loads(pickle.dumps(whole.part(1, 4).part(1, 3)))
    assert whole.in_memory == (kind == "array")
    for some, starts in ((whole, [3, 4, 20, 31]), (part, [20, 31]), (part.localised(), [20, 31])):
        # Frames that windows share are in memory once.
        frames = len({t + k for t in starts for k in range(3)})
        loaded = some.load()
        assert loaded.nbytes == loaded.__sizeof__() == some.nbytes == 4 * frames * 4 * 5
        assert len(loaded) == len(some) == len(starts)
        batch = loaded.take(np.arange(len(starts))[::-1])
        cells = np.array([[12, 13, 14], [22, 23, 24]])
        times = np.array(starts)[::-1, None] + np.arange(3)
        expected = (100 * times[:, :, None, None] + cells)[..., None]
        np.testing.assert_array_equal(batch["x"], expected[:, :2])
        np.testing.assert_array_equal(batch["y"], expected[:, 2:])
        assert batch["x"].dtype == batch["y"].dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_part_pickles_without_the_rest(kind, tmp_path):
    data = series(np.arange(300), 50, 50)
    data.to_zarr(tmp_path / "large.zarr", zarr_format=3, consolidated=False)
    source = {"dask": data.chunk(time=3), "array": data}.get(kind)
    source = KINDS[kind](tmp_path / "large.zarr") if source is None else source
    part = recipe(source, range(297), tile=(50, 50)).part(100, 103)
    frames = 3 * 3 * 10_000 if kind == "dask" else 5 * 10_000 if kind == "array" else 0
    assert len(pickle.dumps(part)) < frames + 6000


def test_nothing_is_read_before_it_is_needed(store):
    def fail(block):
        raise AssertionError("read too early")

    lazy = series(MINUTES).chunk(time=1)["rain_rate"]
    lazy = lazy.copy(data=lazy.data.map_blocks(fail, dtype=np.float32, meta=np.empty((0, 0, 0))))
    whole = recipe(lazy, [0, 1, 2])
    assert (len(whole.part(0, 2)), whole.nbytes) == (2, 5 * 80)
    with pytest.raises(AssertionError, match="read too early"):
        whole.load()


def test_a_worker_in_another_folder_finds_the_store(store, tmp_path, monkeypatch):
    monkeypatch.chdir(store.parent)
    whole = recipe("rain.zarr", [5])
    assert whole.source.name == "rain.zarr"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert whole.load().take(np.array([0]))["x"][0, 0, 0, 0, 0] == 500


def test_changes_of_a_batch_do_not_reach_the_frames(store):
    loaded = recipe(store, [0, 1]).load()
    loaded.take(np.array([0]))["x"][:] = -1
    assert loaded.take(np.array([0]))["x"][0, 0, 0, 0, 0] == 0


# --- counting


def test_wet_and_known_cells_are_counted_by_corner():
    values = np.array([[0.1, np.nan, 0.0], [0.09, 5.0, 0.2]], np.float32)
    source = FrameSource.open(series([0], 2, 3, values), "rain_rate")
    corners = np.array([[0, 0], [0, 1]])
    wet, valid = source.count(np.array([0]), corners, (2, 2), 0.1)
    assert wet.tolist() == [[2, 2]]  # float32 0.1 reaches 0.1
    assert valid.tolist() == [[3, 3]]
    wet, valid = source.count(np.array([0]), np.array([[1, 2]]), (1, 1), 0.1)
    assert (wet.tolist(), valid.tolist()) == ([[1]], [[1]])


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 7, 1000])
def test_workers_count_the_same(at_once, store, workers, monkeypatch):
    monkeypatch.setattr(frames_module, "BLOCK_BYTES", at_once * 80)
    frames, corners = np.array([0, 1, 2, 5, 9, 10, 11, 39]), np.array([[0, 0], [1, 2], [2, 3]])
    array = FrameSource.open(series(MINUTES), "rain_rate")
    expected = array.count(frames, corners, (2, 2), 912.0)
    # A task has the frame numbers of its block and the store's path, not the times.
    counted = FrameSource.open(store, "rain_rate").count(frames, corners, (2, 2), 912.0)
    np.testing.assert_array_equal(counted, expected)
    assert expected[0].tolist()[4:6] == [[0, 4, 4], [4, 4, 4]]
    tasks = workers.run_on_scheduler(
        lambda dask_scheduler: sum(
            p.all_durations["compute"] > 0 for p in dask_scheduler.task_prefixes.values()
        )
    )
    assert (tasks > 0) == (at_once < 1000)  # a single block is not worth a task


def test_workers_that_die_are_an_error(store, monkeypatch):
    died = [(None, frames_module.bounded.Died("the workers died"))]
    monkeypatch.setattr(frames_module.bounded, "in_order", lambda *_: iter(died))
    source = FrameSource.open(store, "rain_rate")
    with pytest.raises(ClusterError, match=r"rain\.zarr: the workers died"):
        source.count(np.arange(3), np.array([[0, 0]]), (1, 1), 0.1)


def test_a_task_makes_no_tasks(workers):
    """Frames of a lazy array are computed by the task that loads them, in its own thread."""
    scattered = workers.scatter(recipe(KINDS["dask"](None), [0, 1]))
    highest = workers.submit(lambda r: float(r.load().frames.max()), scattered, key="load")
    assert highest.result(timeout=30) == 334.0
    computed = workers.run_on_scheduler(
        lambda dask_scheduler: [
            name for name, p in dask_scheduler.task_prefixes.items() if p.all_durations["compute"]
        ]
    )
    assert computed == ["load"]


# --- data that are no frames


def bad(**changes):
    """Return frames with something changed."""
    data = series([0, 5, 10])
    return data.assign(changes) if "rain_rate" in changes else data.assign_coords(changes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (series([0]).rename(rain_rate="dbz"), r"a variable 'rain_rate', found \['dbz'\]"),
        (np.zeros((3, 4, 5)), "a path, a Dataset or a DataArray, found ndarray"),
        (series([0, 5]).transpose("y", "x", "time"), r"found \('y', 'x', 'time'\)"),
        (series([0, 5]).isel(x=0), r"over \(time, y, x\) .*, found \('time', 'y'\)"),
        (series([0, 5]).drop_vars("time"), "with a time coordinate"),
        (bad(time=[0, 1, 2]), "times as datetime64, found int64"),
        (bad(time=instants([0, 5, 5])), "increasing times, found .*T00:05.* after .*T00:05"),
        (bad(time=instants([0, 5, 2])), "increasing times, found .*T00:02.* after .*T00:05"),
        (bad(time=[*instants([0, 5]), np.datetime64("NaT")]), "a time for every frame, found NaT"),
        (
            bad(rain_rate=(("time", "y", "x"), np.full((3, 4, 5), "wet"))),
            "expected rain_rate as numbers, found <U3",
        ),
    ],
)
def test_data_that_are_no_frames_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        FrameSource.open(data, "rain_rate")


def test_paths_that_are_no_stores_are_refused(tmp_path):
    missing = tmp_path / "missing.zarr"
    with pytest.raises(DataError, match=r"missing\.zarr: expected a zarr store, found no such"):
        FrameSource.open(missing, "rain_rate")
    missing.mkdir()
    with pytest.raises(DataError, match=r"missing\.zarr: expected a zarr store, found something"):
        FrameSource.open(missing, "rain_rate")


def test_a_store_that_has_gone_is_named(store):
    whole = recipe(store, [0])
    store.rename(store.with_suffix(".old"))
    with pytest.raises(DataError, match=r"rain\.zarr: expected a zarr store"):
        whole.load()
    assert dask.config.get("scheduler", None) is None
