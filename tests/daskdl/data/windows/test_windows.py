"""Windows of a scene are slices of its arrays, whatever kind of array these are."""

from functools import partial

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from distributed import Client
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from daskdl import SampleSet, Trainer, nn
from daskdl.data.image import Columns, HorizontalFlip
from daskdl.data.recipe import version_of_all
from daskdl.data.windows import grid
from daskdl.errors import DataError, SettingsError
from daskdl.optim import SGD
from tests.daskdl.data.epochs import all_of

RNG = np.random.default_rng(0)
IMAGE = RNG.normal(size=(100, 80, 3)).astype(np.float32)
MASK = (RNG.random((50, 40)) < 0.02).astype(np.uint8)  # of half the resolution


@pytest.fixture(autouse=True)
def _small_partitions(monkeypatch):
    monkeypatch.setattr(grid, "PARTITION_BYTES", 30_000)


@pytest.fixture(params=["numpy", "dask", "mixed", "zarr", "xarray", "opened"])
def scene(request, tmp_path):
    """Return an image and its mask in each kind of array."""
    names = ("y", "x", "band"), ("y", "x")
    fine = np.kron(MASK, np.ones((2, 2), np.uint8))
    data = xr.Dataset({"image": (names[0], IMAGE), "mask": (names[1], fine)})
    if request.param == "opened":
        data.to_zarr(tmp_path / "scene.zarr", consolidated=False)
        return xr.open_zarr(tmp_path / "scene.zarr", chunks=None, consolidated=False), fine
    if request.param == "xarray":
        return data, fine
    kinds = {
        "numpy": lambda name, array: array,
        "dask": lambda name, array: da.from_array(array, chunks=30),
        "mixed": lambda name, array: da.from_array(array) if name == "x" else array,
        "zarr": lambda name, array: zarr.create_array(
            tmp_path / name, data=array, chunks=(17,) * array.ndim
        ),
    }  # fmt: skip
    return {n: kinds[request.param](n, a) for n, a in {"x": IMAGE, "y": MASK}.items()}, MASK


def test_windows_are_slices_whatever_holds_the_arrays(scene):
    data, mask = scene
    named = isinstance(data, xr.Dataset)
    window, names = (
        ({"y": 32, "x": 16}, {"x": "image", "y": "mask"}) if named else ({0: 32, 1: 16}, {})
    )
    samples = SampleSet.from_windows(
        data, window, step=dict(zip(window, (16, 16), strict=True)), **names
    )
    assert samples.partitions > 3
    assert samples.has_schema
    batch, corners = all_of(samples), set()
    of = 100 // len(mask)
    for x, y in zip(batch["x"], batch["y"], strict=True):
        (i,), (j,) = ({int(v) for v in np.argwhere(x[0, 0, 0] == IMAGE)[:, k]} for k in (0, 1))
        np.testing.assert_array_equal(x, IMAGE[i : i + 32, j : j + 16])
        np.testing.assert_array_equal(y, mask[i // of : (i + 32) // of, j // of : (j + 16) // of])
        corners.add((i, j))
    assert corners == {(i, j) for i in range(0, 69, 16) for j in range(0, 65, 16)}
    again = samples.repartition(2).map_batches(lambda b: {"x": b["x"] + 1}).stream(held=40_000)
    np.testing.assert_array_equal(all_of(again)["x"], batch["x"] + 1)


def test_an_axis_of_single_places_is_in_no_sample_and_other_arrays_may_lack_axes():
    data = {"x": RNG.normal(size=(5, 64, 64)), "y": xr.DataArray(np.arange(5), dims="t")}
    data["x"] = xr.DataArray(data["x"], dims=("t", "y", "x"))
    batch = all_of(SampleSet.from_windows(data, {"t": None, "y": 32, "x": 64}))
    assert batch["x"].shape == (10, 32, 64)
    assert sorted(batch["y"]) == np.repeat(np.arange(5), 2).tolist()


@pytest.mark.parametrize("lazy", [False, True])
def test_windows_are_chosen_by_where(lazy):
    place = np.zeros((100, 80), bool)
    place[40, 70] = True
    where = da.from_array(place, chunks=20) if lazy else place
    data = {"x": IMAGE, "y": place}
    chosen = SampleSet.from_windows(data, {0: 32, 1: 16}, step=16, where=where)
    other = SampleSet.from_windows(
        data, {0: 32, 1: 16}, step=16, where=lambda b: b["y"].any((1, 2))
    )
    np.testing.assert_array_equal(all_of(chosen)["x"], all_of(other)["x"])
    assert len(chosen) == 2
    with pytest.raises(DataError, match="at least one window that it accepts"):
        SampleSet.from_windows(data, {0: 32, 1: 16}, where=place & False)


def test_rare_classes_are_drawn_as_often_as_others():
    labels = np.zeros((320, 320), int)
    labels[:32, :32], labels[64:96, :64] = 1, 2
    samples = SampleSet.from_windows(
        {"x": labels, "y": labels}, {0: 32, 1: 32}, weights="y", seed=3
    )
    assert len(samples) == 100
    drawn = np.bincount(all_of(samples)["y"].ravel(), minlength=3) / 32**2
    np.testing.assert_allclose(drawn, 100 / 3, atol=1)
    heavy = SampleSet.from_windows(labels, {0: 32, 1: 32}, weights=(labels == 2))
    assert (all_of(heavy)["x"] == 2).all()


def _epoch(samples, epoch):
    """Return the first cell of each window of an epoch, as a fit draws them."""
    parts = [(i, recipe.load()) for i, recipe in enumerate(samples.recipes)]
    orders = [part.order(7, epoch, i) for i, part in parts]
    assert [len(order) for order in orders] == [*samples.lengths]
    return np.concatenate(
        [part.take(o)["x"][:, 0, 0] for (_, part), o in zip(parts, orders, strict=True)]
    )


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("lazy", [False, True])
def test_each_epoch_draws_its_own_windows_as_often_as_they_weigh(partitions, lazy):
    x, labels = np.arange(320 * 320).reshape(320, 320), np.zeros((320, 320), int)
    labels[:32, :32], labels[64:96, :64] = 1, 2
    data = {"x": da.from_array(x, chunks=100) if lazy else x, "y": labels}
    samples = SampleSet.from_windows(data, {0: 32, 1: 32}, weights="y", partitions=partitions)
    epochs = [_epoch(samples, epoch) for epoch in range(12)]
    rare = [(epoch == 0).sum() for epoch in epochs]
    np.testing.assert_allclose(rare, 100 / 3, atol=2)
    assert {*epochs[0].tolist()} != {*epochs[1].tolist()}
    assert len({*np.concatenate(epochs).tolist()}) > 90  # of 100 windows, 30 in one epoch
    np.testing.assert_array_equal(_epoch(samples, 5), epochs[5])
    part, _ = samples.split((0.5, 0.5), blocks={0: 64, 1: 64})
    assert len({*_epoch(part, 0).tolist()} ^ {*_epoch(part, 1).tolist()}) > 2


def test_windows_of_scenes_of_other_sizes_are_one_set(tmp_path):
    small = IMAGE[:50, :40] + 10
    samples = SampleSet.from_windows([{"x": IMAGE}, {"x": small}], {0: 20, 1: 20})
    assert len(samples) == 5 * 4 + 2 * 2
    assert (all_of(samples)["x"].min((1, 2, 3)) > 5).sum() == 4
    where = [IMAGE[..., 0] > 9, small[..., 0] < 9]
    chosen = SampleSet.from_windows([IMAGE, small], {0: 20, 1: 20}, where=where)
    assert (all_of(chosen)["x"] > 5).all()
    with pytest.raises(DataError, match="windows have the same arrays"):
        SampleSet.from_windows([IMAGE, small.astype(float)], {0: 20, 1: 20})
    with pytest.raises(SettingsError, match="an array for each of 2 scenes, found 1"):
        SampleSet.from_windows([IMAGE, small], {0: 20, 1: 20}, where=where[:1])


def test_a_change_of_a_zarr_array_changes_the_version_of_its_windows(tmp_path):
    stored = zarr.create_array(tmp_path / "image", data=IMAGE, chunks=(17, 17, 3))

    def version():
        return version_of_all(SampleSet.from_windows(stored, {0: 32, 1: 32}).recipes)

    before = version()
    assert before == version()
    assert before
    stored[90, 70] = 0
    assert version() != before


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(16, 60), st.integers(0, 9))
def test_sets_of_blocks_share_no_cell(step, block, seed):
    cells = np.arange(300 * 20).reshape(300, 20)
    samples = SampleSet.from_windows(cells, {0: 16, 1: 20}, step=step)
    try:
        parts = samples.split((0.5, 0.5), seed=seed, blocks={0: block})
    except SettingsError:  # one set's blocks have no whole window
        reject()
    one, other = ({*all_of(part)["x"].ravel()} for part in parts)
    assert not one & other


def test_splits_that_share_cells_warn_and_too_large_blocks_are_refused():
    samples = SampleSet.from_windows(IMAGE, {0: 32, 1: 16}, step=16)
    with pytest.warns(UserWarning, match=r"overlap along 0, .* give blocks, such as \{0: 128"):
        samples.split((0.5, 0.5))
    with pytest.warns(UserWarning, match="lie side by side"):
        SampleSet.from_windows(IMAGE, {0: 32, 1: 16}).split((0.5, 0.5))
    with pytest.raises(SettingsError, match="take smaller blocks"):
        samples.split((0.5, 0.5), blocks={0: 100})


def test_an_augmentation_moves_image_and_mask_together():
    both = {"x": IMAGE, "y": (IMAGE[..., 0] > 0).astype(np.uint8)}
    flip = partial(HorizontalFlip(0.5), columns=Columns(masks="y"))
    samples = SampleSet.from_windows(both, {0: 20, 1: 16}).map(flip)
    batch, unflipped = all_of(samples), all_of(SampleSet.from_windows(both, {0: 20, 1: 16}))
    np.testing.assert_array_equal(batch["y"], batch["x"][..., 0] > 0)
    assert (batch["x"] != unflipped["x"]).any()


@pytest.mark.slow
def test_a_fit_has_the_same_bits_whatever_holds_the_windows():
    x, y = IMAGE[:96, :64], (IMAGE[:96, :64, 0] > 0).astype(int)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    weights = []
    with Client(**options, dashboard_address=":0") as client:
        lazy = {"x": da.from_array(x, chunks=30), "y": da.from_array(y, chunks=50)}
        arrays = {"x": lazy["x"].persist(), "y": y}
        for data in ({"x": x, "y": y}, lazy, arrays):
            model = nn.Conv2d(3, 2, 3, padding=1, seed=0)
            samples = SampleSet.from_windows(data, {0: 32, 1: 32}, step=16, partitions=2)
            trainer = Trainer(model, nn.CrossEntropyLoss(), SGD(0.1))
            trainer.fit(samples, epochs=2, batch_size=4, client=client, progress=False)
            weights.append(np.array(model.flat))
    assert (weights[0] == weights[1]).all()
    assert (weights[0] == weights[2]).all()


@pytest.mark.parametrize(
    ("window", "options", "sentence"),
    [
        ({"y": 8}, {}, "axes of the arrays"),
        ({0: 0, 1: 8}, {}, "whole cells along 0, found 0"),
        ({0: 200, 1: 8}, {}, "at least 200 cells along 0"),
        ({0: 7, 1: 8}, {}, "multiples of the arrays' ratio"),
        ({0: 8, 1: 8}, {"weights": "z"}, "array of classes"),
        ({0: 8, 1: 8}, {"where": np.ones((3, 3))}, "a number for each cell"),
    ],
)
def test_mistakes_are_sentences(window, options, sentence):
    with pytest.raises((DataError, SettingsError), match=sentence):
        SampleSet.from_windows({"x": IMAGE, "y": MASK}, window, **options)
    lazy = da.from_array(IMAGE)
    with pytest.raises(DataError, match="an array of known shape, found Array of shape"):
        SampleSet.from_windows(lazy[lazy[:, 0, 0] > 0], {0: 8, 1: 8})
