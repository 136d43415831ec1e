"""A scene predicted by tiles equals the scene predicted whole, in any kind of array."""

import os
import pickle
import re
import signal
import threading
import time
from types import SimpleNamespace

import dask.array as da
import numpy as np
import psutil
import pytest
import xarray as xr
import zarr

from daskdl import nn, ops
from daskdl.errors import DataError, SettingsError
from daskdl.models import FPN
from daskdl.predict.scenes import running
from tests.daskdl.clusters import small_client

RNG = np.random.default_rng(0)


def _block(channels, filters, seed):
    return nn.Sequential(
        nn.Conv2d(channels, filters, 3, padding=1, seed=seed), nn.BatchNorm(filters), nn.ReLU()
    )


class _UNet(nn.Module):
    """Two depths, and a head of so few filters that neighbouring windows are computed as one."""

    def __init__(self):
        self.fine, self.coarse, self.pool = _block(3, 8, 0), _block(8, 16, 1), nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2, seed=2)
        self.both, self.head = _block(16, 16, 3), nn.Conv2d(16, 2, 3, padding=1, seed=4)

    def forward(self, x):
        """Return two scores for each pixel."""
        fine = self.fine(x)
        up = self.up(self.coarse(self.pool(fine)))
        return self.head(self.both(ops.concatenate(up, fine)))


class _Residual(nn.Module):
    def __init__(self):
        self.stem = nn.Conv2d(3, 16, 7, stride=2, padding="same", seed=0)
        self.one, self.two = _block(16, 16, 1), _block(16, 16, 2)

    def forward(self, x):
        """Return features at half the resolution."""
        x = self.stem(x)
        return ops.relu(x + self.two(self.one(x)))


NETWORKS = {
    "unet": _UNet(),
    "residual": _Residual(),
    "pyramid": FPN(3, 2, filters=(8, 16, 16), width=16),
    "dilated": nn.Sequential(
        _block(3, 16, 0), nn.Conv2d(16, 16, 3, padding=4, dilation=4, seed=1), nn.ReLU(),
        nn.Conv2d(16, 3, 5, padding=2, seed=2),
    ),
    "strided": nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding="same", seed=0), nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1), nn.Conv2d(16, 8, 3, padding="same", seed=1),
    ),
    "resized": nn.Sequential(
        _block(3, 8, 0), nn.MaxPool2d(4), _block(8, 8, 1), nn.Upsample((2, 3), "bilinear"),
        _block(8, 8, 2), nn.Upsample(2, "bilinear"), nn.Conv2d(8, 2, 3, padding=1, seed=3),
    ),
    "unpadded": nn.Sequential(nn.Conv2d(3, 16, 3, seed=0), nn.ReLU(), nn.Conv2d(16, 8, 3, seed=1)),
    "finer": nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, seed=0), nn.ConvTranspose2d(8, 8, 2, stride=2, seed=1)
    ),
}  # fmt: skip


def _scene(rows=334, columns=546):
    return RNG.normal(size=(rows, columns, 3)).astype(np.float32)


@pytest.mark.parametrize("network", NETWORKS)
def test_tiles_are_the_whole_bit_for_bit(network):
    shapes = {"unet": (334, 546), "resized": (332, 548)}
    model, scene = NETWORKS[network], _scene(*shapes.get(network, (333, 547)))
    whole = model.predict(scene[None], threads=1)[0]
    tiled = model.predict(scene, tile={0: 64, 1: 128}, threads=1)
    assert tiled.shape == whole.shape
    assert tiled.dtype == whole.dtype
    np.testing.assert_array_equal(tiled, whole)
    near = model.predict(scene, tile={0: 128, 1: 128}, overlap="field", threads=1)
    np.testing.assert_allclose(near, whole, atol=1e-5 * abs(whole).max())


@pytest.mark.long
@pytest.mark.kills
@pytest.mark.parametrize("network", ["unet", "pyramid", "residual", "dilated", "strided"])
def test_a_large_scene_by_any_chunks_on_any_workers_one_killed(network, tmp_path):
    model, scene = NETWORKS[network], _scene(4096, 4096)
    whole = model.predict(scene[None])[0]
    for workers, side in ((1, 100), (2, 512), (3, 1000), (3, 4096)):
        stored = zarr.create_array(tmp_path / f"{side}", data=scene, chunks=(side, side, 3))
        cells, out = stored if side < 4096 else da.from_zarr(stored), tmp_path / f"out{side}"
        with small_client(workers, default=True, processes=True) as client:
            pids = [*client.run(os.getpid).values()]

            def kill(pids=pids, out=out):
                while len([*out.rglob("c/*/*/0")]) < 5:
                    time.sleep(0.01)
                os.kill(pids[0], signal.SIGKILL)

            if workers == 3:
                threading.Thread(target=kill, daemon=True).start()
            result = model.predict(cells, tile={0: 512, 1: 512}, out=out)[:]
            if workers == 3:
                assert not psutil.pid_exists(pids[0])
        assert result.tobytes() == whole.tobytes()


@pytest.mark.parametrize("chunks", [(100, 77, 3), (-1, -1, 2)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"overlap": 16, "blend": "linear"},
        {"overlap": 16, "blend": "cosine", "boundary": "edge"},
    ],
)
def test_chunks_and_places_change_no_bit(chunks, options, tmp_path):
    model, scene = NETWORKS["unet"], _scene()
    options = {"tile": {0: 128, 1: 128}, "threads": 1, **options}
    here = model.predict(scene, **options)
    lazy = model.predict(da.from_array(scene, chunks=chunks), **options)
    assert lazy.chunks[:2] == ((128, 128, 78), (128, 128, 128, 128, 34))
    np.testing.assert_array_equal(lazy.compute(scheduler="threads"), here)
    stored = zarr.create_array(tmp_path / "scene.zarr", data=scene, chunks=(50, 60, 3))
    np.testing.assert_array_equal(model.predict(stored, **options).compute(), here)
    file = np.memmap(tmp_path / "scene", np.float32, "w+", shape=scene.shape)
    file[:] = scene
    np.testing.assert_array_equal(model.predict(file, **options).compute(), here)


class _Two(nn.Module):
    """Returns scores of each pixel, and features of half the resolution."""

    def __init__(self, named):
        self.named, self.fine = named, nn.Conv2d(3, 4, 3, padding=1, seed=0)
        self.coarse = nn.Conv2d(4, 2, 3, stride=2, padding="same", seed=1)

    def forward(self, x):
        """Return both."""
        fine = self.fine(x)
        both = ops.tanh(fine), self.coarse(fine)
        return dict(zip(("scores", "features"), both, strict=True)) if self.named else both


@pytest.mark.parametrize("named", [False, True])
def test_several_results_have_each_its_own_resolution(named, tmp_path):
    model, scene = _Two(named), _scene(100, 90)
    names = ("scores", "features") if named else (0, 1)
    whole, options = model.predict(scene[None]), {"tile": {0: 32, 1: 48}, "threads": 1}
    tiled = model.predict(scene, **options)
    out = {name: tmp_path / str(name) for name in names}
    stored = model.predict(scene, out=out, **options)
    for name, scale in zip(names, (1, 2), strict=True):
        assert tiled[name].shape[:2] == (100 // scale, 90 // scale)
        np.testing.assert_array_equal(tiled[name], whole[name][0])
        np.testing.assert_array_equal(stored[name][:], whole[name][0])
    with pytest.raises(SettingsError, match="a path for each of the results"):
        model.predict(scene, out=tmp_path / "one", **options)


def test_names_coordinates_and_attributes_stay():
    model, images = NETWORKS["residual"], RNG.normal(size=(2, 3, 100, 120)).astype(np.float32)
    scene = xr.DataArray(
        images, dims=("time", "band", "y", "x"), attrs={"crs": "EPSG:3035"},
        coords={"time": [3, 4], "y": np.arange(100) * 10.0, "x": np.arange(120) * 10.0},
    )  # fmt: skip
    result = model.predict(scene.chunk(x=50), tile={"y": 32, "x": 48}, channel="band")
    assert result.dims == ("time", "band", "y", "x")
    assert result.attrs == scene.attrs
    np.testing.assert_array_equal(result.y, np.arange(50) * 20.0 + 5)
    np.testing.assert_array_equal(result.time, [3, 4])
    whole = model.predict(images.transpose(0, 2, 3, 1), threads=1).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(result.values, whole)


def test_classes_of_an_image_without_channels():
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, seed=0), nn.Conv2d(8, 4, 1, seed=1))
    image = RNG.normal(size=(90, 100)).astype(np.float32)
    whole = model.predict_class(image[None, ..., None])[0]
    np.testing.assert_array_equal(model.predict_class(image, tile={0: 32, 1: 32}), whole)


@pytest.mark.parametrize("blend", ["linear", "cosine"])
@pytest.mark.parametrize("boundary", [None, "symmetric"])
def test_blended_tiles_of_a_network_that_changes_nothing_are_the_scene(blend, boundary):
    model, scene = nn.Identity(), _scene(50, 70)
    options = {"tile": {0: 16, 1: 20}, "overlap": 8, "blend": blend, "boundary": boundary}
    np.testing.assert_allclose(model.predict(scene, **options), scene, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 5, 150])
@pytest.mark.parametrize("boundary", ["reflect", "symmetric", "edge", "wrap"])
def test_beyond_its_border_a_scene_goes_on_as_numpy_pads_it(boundary, rows):
    model, scene = NETWORKS["dilated"], _scene(rows, 170)
    wide = np.pad(scene, ((64, 64), (64, 64), (0, 0)), mode=boundary)
    expected = model.predict(wide[None], threads=1)[0, 64:-64, 64:-64]
    options = {"tile": {0: 64, 1: 64}, "boundary": boundary, "threads": 1}
    np.testing.assert_array_equal(model.predict(scene, **options), expected)
    lazy = model.predict(da.from_array(scene, chunks=70), **options)
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)


VOLUMES = {
    "pooled": nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1, seed=0), nn.ReLU(), nn.MaxPool3d(2),
        nn.Conv3d(8, 8, 3, padding=1, seed=1), nn.ConvTranspose3d(8, 2, 2, stride=2, seed=2),
    ),
    "flat strides": nn.Conv3d(1, 4, (1, 3, 3), stride=(1, 2, 2), padding=(0, 1, 1), seed=0),
}  # fmt: skip


@pytest.mark.parametrize("network", VOLUMES)
def test_tiles_of_a_volume_are_the_whole_bit_for_bit(network):
    model, volume = VOLUMES[network], RNG.normal(size=(22, 70, 66)).astype(np.float32)
    whole = model.predict(volume[None, ..., None], threads=1)[0]
    tiled = model.predict(volume, tile={0: 8, 1: 32, 2: 32}, threads=1)
    np.testing.assert_array_equal(tiled, whole)


class _Centred(nn.Module):
    def forward(self, x):
        """Return the differences from the image's mean."""
        return x - ops.mean(x, axis=(1, 2), keepdims=True)


def test_networks_that_see_the_whole_scene_need_an_overlap():
    scene = _scene(64, 64)
    with pytest.raises(SettingsError, match=r"_Centred, with mean, .* give overlap=n"):
        _Centred().predict(scene, tile={0: 32, 1: 32})
    for network, sentence in (
        (nn.Resize(128, align_corners=True), "other weights at each place"),
        (nn.Resize(128), "the same at every size"),
    ):
        with pytest.raises(SettingsError, match=f"{sentence}.* give overlap=n"):
            network.predict(scene, tile={0: 32, 1: 32})
    result = _Centred().predict(scene, tile={0: 32, 1: 32}, overlap=0)
    corner = scene[:32, :32]
    np.testing.assert_allclose(result[:32, :32], corner - corner.mean((0, 1)), atol=1e-5)
    line, wave = (
        _Centred().predict(scene, tile={0: 32, 1: 32}, overlap=8, blend=blend)
        for blend in ("linear", "cosine")
    )
    difference = abs(wave - line)[:20].max((0, 2))  # 0 in one tile, and in the middle of two
    assert difference[:20].max() < 1e-6 < 1e-4 < difference[26:30].min()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tile": {"y": 8}}, "axes of the scene"),
        ({"tile": {0: 9, 1: 8}}, "multiple of 2"),
        ({"tile": {0: 8}}, "the axis of channels"),
        ({"tile": {0: 8, 1: 8}, "blend": "linear"}, "overlap=n"),
        ({"overlap": 3}, "found no tile"),
        ({"tile": {0: 8, 1: 8}, "boundary": "mirror"}, "'wrap'.*, found 'mirror'"),
        ({"tile": {0: 8, 1: 8}, "out": 3}, "a path or URL, found 3"),
        ({"tile": {0: 8, 1: 8}, "out": __file__}, "with nothing at .* File exists"),
        ({"tile": {0: 8, 1: 8}, "out": "nowhere://a"}, "with nothing at .* nowhere"),
    ],
)
def test_wrong_options_are_refused(options, sentence):
    with pytest.raises(SettingsError, match=sentence):
        NETWORKS["residual"].predict(_scene(64, 64), **options)


def test_scenes_of_other_kinds_are_refused(tmp_path):
    model, options = NETWORKS["residual"], {"tile": {0: 8, 1: 8}}
    scene = _scene(64, 64)
    for wrong in (scene.tolist(), xr.DataArray(scene).to_dataset(name="a"), scene.astype(str)):
        with pytest.raises(SettingsError, match="expected a scene of numbers"):
            model.predict(wrong, **options)
    lazy = da.from_array(scene)
    with pytest.raises(DataError, match="compute_chunk_sizes"):
        model.predict(lazy[lazy[:, 0, 0] > 0], **options)
    np.save(tmp_path / "scene.npy", scene)
    with pytest.raises(SettingsError, match="as its file has it"):  # changes are not in the file
        model.predict(np.load(tmp_path / "scene.npy", mmap_mode="c"), **options)


def test_written_chunks_are_kept_unless_their_cells_have_changed(tmp_path):
    model, scene, out = NETWORKS["residual"], _scene(300, 90), str(tmp_path / "out.zarr")
    options = {"tile": {0: 64, 1: 64}, "out": out}
    whole = model.predict(scene[None])[0]
    array = model.predict(scene, **options)
    assert array.chunks == (32, 32, 16)
    np.testing.assert_array_equal(array[:], whole)
    array[:32, :32] = 7  # a chunk that is done is not computed again
    array.store_path.store.root.joinpath("c", "1", "1", "0").unlink()
    scene[299, 89] += 1
    again = model.predict(da.from_array(scene), **options)[:]
    whole = model.predict(scene[None])[0]
    assert (again[:32, :32] == 7).all()
    again[:32, :32] = whole[:32, :32]
    np.testing.assert_array_equal(again, whole)
    with pytest.raises(SettingsError, match="found another array"):
        model.predict(scene, **options | {"tile": {0: 32, 1: 32}})


class _Counting(nn.Module):
    passes = 0

    def forward(self, x):
        """Return the input, and count."""
        _Counting.passes += len(x)
        return x + 0


@pytest.mark.parametrize("nodata", [np.nan, -9.0])
def test_cells_without_data_stay_so_and_tiles_without_any_are_not_computed(nodata):
    scene = _scene(160, 96)
    scene[:70], scene[100:102, 50] = nodata, nodata
    result = NETWORKS["residual"].predict(scene, tile={0: 32, 1: 32}, overlap=8, nodata=nodata)
    empty = np.zeros((80, 48), bool)
    empty[:35] = True
    np.testing.assert_array_equal(np.isnan(result).all(-1), empty)
    assert not np.isnan(result[~empty]).any()
    classes = NETWORKS["finer"].predict_class(scene, tile={0: 32, 1: 32}, nodata=nodata)
    np.testing.assert_array_equal(classes[:140] == -1, True)
    assert (classes[200:202, 100:102] == -1).all()
    counting, before = _Counting(), None
    for value in (None, nodata):
        _Counting.passes = 0
        counting.predict(scene, tile={0: 32, 1: 32}, overlap=0, nodata=value)
        before = before or _Counting.passes
    assert before - _Counting.passes == 2 * 3


def test_progress_and_memory_are_logged_and_a_tile_that_does_not_fit_is_refused(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(running, "LOG", -1.0)
    model, scene = NETWORKS["unet"], _scene()
    model.predict(scene, tile={0: 128, 1: 128}, out=str(tmp_path / "a.zarr"))
    log = capsys.readouterr().err
    assert re.search(r"at most .* MiB a worker of .*: \d+ x .* for tiles of 128 x 128", log)
    assert re.search(r"tile 7 of 15, .* Mpixel/s, [\d.]+ m?s left", log)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=200_000_000))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    with pytest.raises(SettingsError, match=r"tile=\{0: \d+, 1: \d+\} would fit"):
        model.predict(scene, tile={0: 334, 1: 546}, out=str(tmp_path / "b.zarr"))
    wide = da.zeros((334, 30_000, 3), chunks=(167, 500, 3), dtype="f4")  # 120 MB in rows of chunks
    with pytest.raises(SettingsError, match=r"no tile fits.* smaller chunks"):
        model.predict(wide, tile={0: 128, 1: 128}, out=str(tmp_path / "b.zarr"))
    assert not (tmp_path / "b.zarr").exists()


@pytest.mark.slow
def test_a_scene_in_memory_goes_to_workers_window_by_window(tmp_path):
    model, scene = NETWORKS["residual"], _scene(2000, 300)
    options = {"tile": {0: 128, 1: 128}, "overlap": "field"}
    here, largest = model.predict(scene, threads=1, **options), []
    with small_client(default=True) as client:
        submit = running.submitted

        def watched(client, graph, *options):
            largest.append(len(pickle.dumps(graph)))
            return submit(client, graph, *options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "submitted", watched)
            there = model.predict(scene, client=client, threads=1, **options)
            written = model.predict(scene, threads=1, out=str(tmp_path / "out.zarr"), **options)
    np.testing.assert_array_equal(there, here)
    np.testing.assert_array_equal(written[:], here)
    assert max(largest) < scene.nbytes / 4
