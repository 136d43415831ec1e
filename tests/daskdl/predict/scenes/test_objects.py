"""Objects across tiles are one: labels equal the whole scene's, and boxes come once."""

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.measure import label

from daskdl.errors import DataError, SettingsError
from daskdl.predict import detect_scene, label_scene


def _by_first_cell(labels):
    """Number objects row by row, which scikit-image does not in narrow volumes."""
    numbers, first = np.unique(labels, return_index=True)
    ranks = np.zeros(labels.max() + 1, int)
    ranks[numbers[numbers > 0][np.argsort(first[numbers > 0])]] = np.arange(
        1, (numbers > 0).sum() + 1
    )
    return ranks[labels]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=st.integers(0, 999), classes=st.integers(2, 4))
def test_labels_equal_labels_of_the_whole_scene(data, seed, classes):
    ndim = data.draw(st.integers(1, 3))
    shape = data.draw(st.tuples(*[st.integers(1, (40, 20, 9)[ndim - 1])] * ndim))
    chunks = data.draw(st.tuples(*[st.integers(1, 8)] * ndim))
    connectivity, background = data.draw(st.integers(1, ndim)), data.draw(st.integers(0, 1))
    share = data.draw(st.sampled_from([0.3, 0.6, 0.9]))
    draw = np.random.default_rng(seed)
    scene = draw.integers(1, classes, shape) * (draw.random(shape) < share)
    objects = label_scene(da.from_array(scene, chunks=chunks), background, connectivity)
    whole = _by_first_cell(label(scene, background=background, connectivity=connectivity))
    np.testing.assert_array_equal(objects.labels.compute(scheduler="sync"), whole)
    np.testing.assert_array_equal(objects.sizes, np.bincount(whole.ravel())[1:])


def test_a_mask_of_any_kind_is_labelled(tmp_path):
    mask = np.zeros((60, 80), bool)
    mask[5:50, 30], mask[49, 5:70], mask[55:, 3] = True, True, True
    stored = zarr.create_array(tmp_path / "mask", data=mask, chunks=(16, 16))
    named = xr.DataArray(
        da.from_array(mask, chunks=16), dims=("y", "x"), coords={"x": np.arange(80)}
    )
    for scene in (stored, mask, named):
        objects = label_scene(scene)
        np.testing.assert_array_equal(np.asarray(objects.labels), label(mask))
        assert objects.sizes.tolist() == [109, 5]
    assert label_scene(named).labels.x[3] == 3
    with pytest.raises(DataError, match="whole numbers or booleans, found float64"):
        label_scene(mask * 0.5)
    lazy = da.from_array(mask)
    for wrong in (named.to_dataset(name="a"), mask[:0], lazy[lazy[:, 0]]):
        with pytest.raises(DataError, match="chunks of known size"):
            label_scene(wrong)
    with pytest.raises(SettingsError, match="expected 1 to 2, found 3"):
        label_scene(mask, connectivity=3)


def _squares(images):
    """Find bright squares in images; scores are a bit higher in the middle of an image."""
    results = []
    for image in images[..., 0]:
        numbers = label(image > 0, connectivity=2)
        edges, scores, classes = [], [], []
        for i in range(1, numbers.max() + 1):
            rows, columns = np.nonzero(numbers == i)
            box = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
            edges.append(np.array(box) / np.array([*image.shape[::-1]] * 2))
            scores.append(0.9 - 0.1 * abs(rows.mean() / len(image) - 0.5))
            classes.append(int(image[rows[0], columns[0]]) - 1)
        results.append({
            "boxes": np.array(edges).reshape(-1, 4), "scores": np.array(scores),
            "labels": np.array(classes, int),
        })  # fmt: skip
    return results


class _Lazy:
    """A scene in a file that may not be read before the tasks run."""

    ndim, dtype, running = 3, np.dtype(np.float32), False

    def __init__(self, cells):
        self.cells, self.shape = cells, cells.shape

    def __getitem__(self, index):
        part = self.cells[index]
        assert self.running or not part.size
        return part

    def get(self, graph, keys, **_):
        self.running = True
        return dask.get(graph, keys)


@pytest.mark.parametrize("kind", ["numpy", "dask"])
def test_a_box_at_a_border_of_windows_is_found_once(kind):
    scene, expected = np.zeros((210, 330, 1), np.float32), []
    draw = np.random.default_rng(0)
    for i, j in np.ndindex(10, 16):
        top, column, n = 20 * i + draw.integers(5), 20 * j + draw.integers(5), draw.integers(4, 14)
        scene[top : top + n, column : column + n] = kind_of = draw.integers(1, 3)
        expected.append((column, top, column + n, top + n, kind_of - 1))
    source = scene if kind == "numpy" else da.from_array(scene, chunks=(50, 70, 1))
    objects = detect_scene(_squares, source, {0: 64, 1: 80}, margin=16)
    rows = np.column_stack([objects["boxes"].round(), objects["labels"]]).astype(int)
    assert sorted(map(tuple, rows.tolist())) == sorted(expected)
    assert (np.diff(objects["scores"]) <= 0).all()
    with dask.config.set(scheduler=(lazy := _Lazy(scene)).get):
        again = detect_scene(_squares, lazy, {0: 64, 1: 80}, margin=16)
    np.testing.assert_array_equal(again["boxes"], objects["boxes"])
    empty = detect_scene(_squares, source * 0, {0: 64, 1: 80}, margin=16)
    assert [len(column) for column in empty.values()] == [0, 0, 0]


def test_wrong_detectors_and_windows_are_refused():
    scene, window = np.zeros((70, 90, 1), np.float32), {0: 64, 1: 80}
    two = {"boxes": np.zeros((2, 4)), "scores": [0.5], "labels": [1]}
    for detect, windows, margin, sentence in (
        (_squares, window, 1.5, "margin: expected a whole number of at least 0, found 1.5"),
        (_squares, {0: 64, 1: 16}, 16, r"window\[1\], .* number of at least 17, found 16"),
        (_squares, 64, 16, "window: expected {0: rows, 1: columns}, found 64"),
        (len, window, 16, "expected a list with a dict of boxes .*, found 1"),
        (lambda _: [{"boxes": []}], window, 16, "scores .*, found .{'boxes'"),
        (lambda _: [two], window, 16, "expected a list with a dict"),
    ):
        with pytest.raises((DataError, SettingsError), match=sentence):
            detect_scene(detect, scene, windows, margin)
