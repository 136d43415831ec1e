"""GeoTIFF is read and written with its numbers in place; outlines match the labels."""

import json

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from scipy.ndimage import gaussian_filter

from daskdl import nn
from daskdl.errors import DataError, SettingsError
from daskdl.predict import label_scene, outlines, rasterized

rasterio = pytest.importorskip("rasterio")
affine = pytest.importorskip("affine")
RNG = np.random.default_rng(0)
TILE = {0: 64, 1: 64}


@pytest.fixture
def scene(tmp_path):
    """Return the path of a file and its numbers; some rows have no data."""
    cells = RNG.normal(size=(150, 210, 3)).astype(np.float32)
    cells[:70] = -99
    place = affine.Affine(10, 0, 5e5, 0, -10, 5e6)
    profile = {"driver": "GTiff", "width": 210, "height": 150, "count": 3, "dtype": "float32"}
    path = tmp_path / "scene.tif"
    with rasterio.open(path, "w", crs="EPSG:32632", transform=place, nodata=-99, **profile) as file:
        file.write(cells.transpose(2, 0, 1))
    return path, cells


def test_a_file_is_predicted_window_by_window_and_written_with_its_place(scene, tmp_path):
    (path, cells), out = scene, tmp_path / "out.tif"
    model = nn.Sequential(nn.Conv2d(3, 4, 3, 2, "same", seed=0), nn.ReLU())
    expected = model.predict(cells, tile=TILE, nodata=-99, threads=1)
    assert np.isnan(expected[0]).all()
    np.testing.assert_array_equal(model.predict(path, tile=TILE).compute(), expected)
    assert model.predict(str(path), tile=TILE, out=out).shape == (75, 105, 4)
    with rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read().transpose(1, 2, 0), expected)
        assert file.transform == affine.Affine(20, 0, 5e5, 0, -20, 5e6)
        assert file.crs.to_epsg() == 32632
        assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.tif", "scene.tif"]
    with pytest.raises(SettingsError, match="nothing at it for a GeoTIFF"):
        model.predict(path, tile=TILE, out=out)
    with pytest.raises(DataError, match=r"the path of a GeoTIFF, found none\.tif"):
        model.predict("none.tif", tile=TILE)


def test_classes_of_named_cells_are_written_where_their_coordinates_say(tmp_path):
    cells = RNG.normal(size=(2, 90, 100)).astype(np.float32)
    named = xr.DataArray(
        cells, dims=("band", "y", "x"), attrs={"crs": "EPSG:3035"},
        coords={"y": 1000 - 10.0 * np.arange(90), "x": 10.0 * np.arange(100)},
    )  # fmt: skip
    model = nn.Conv2d(2, 3, 3, padding=1, seed=0)
    out, tile = tmp_path / "out.tif", {"y": 32, "x": 32}
    expected = model.predict_class(named, tile=tile)
    model.predict_class(named, tile=tile, out=out)
    with rasterio.open(out) as file:
        np.testing.assert_array_equal(file.read(1), expected)
        assert file.transform == affine.Affine(10, 0, -5, 0, -10, 1005)
    with pytest.raises(SettingsError, match="and then channels"):
        nn.Identity().predict(named, tile=tile, overlap=0, out=tmp_path / "other.tif")


def test_a_turned_grid_keeps_its_place_or_is_refused(tmp_path):
    place = affine.Affine.translation(5e5, 5e6) @ affine.Affine.rotation(20)
    place = place @ affine.Affine.scale(10, -20)
    mask = np.zeros((30, 40, 1), np.float32)
    mask[10:20, 5:15] = 1
    column, row = np.meshgrid(np.arange(40) + 0.5, np.arange(30) + 0.5)
    xc, yc = (
        place.a * column + place.b * row + place.c,
        place.d * column + place.e * row + place.f,
    )
    named = xr.DataArray(
        mask, dims=("y", "x", "band"), attrs={"crs": "EPSG:32632"},
        coords={"xc": (("y", "x"), xc), "yc": (("y", "x"), yc)},
    )  # fmt: skip
    path, options = tmp_path / "scene.tif", {"overlap": 0}
    profile = {"driver": "GTiff", "width": 40, "height": 30, "count": 1, "dtype": "float32"}
    with rasterio.open(path, "w", crs="EPSG:32632", transform=place, **profile) as file:
        file.write(mask[..., 0], 1)
    for scene, tile in ((named, {"y": 16, "x": 16}), (path, {0: 16, 1: 16})):
        out = tmp_path / f"{type(scene).__name__}.tif"
        nn.MaxPool2d(2).predict(scene, tile=tile, out=out, **options)
        with rasterio.open(out) as file:
            assert file.transform.almost_equals(place @ affine.Affine.scale(2), 1e-6)
    for coords in ({"spatial_ref": 0}, {"y": np.arange(30) ** 2, "x": np.arange(40)}):
        other = xr.DataArray(mask, dims=("y", "x", "band"), coords=coords)
        with pytest.raises(SettingsError, match=r"expected even coordinates y and x, .* found"):
            nn.MaxPool2d(2).predict(other, tile={"y": 16, "x": 16}, out=out.with_stem("a"))
        assert not [*tmp_path.glob("a*")]
    pytest.importorskip("shapely")
    ring = outlines(named[..., 0].astype(int))["features"][0]["geometry"]["coordinates"][0]
    corners = [place @ corner for corner in ((5, 10), (15, 10), (15, 20), (5, 20))]
    np.testing.assert_allclose(sorted(ring[1:]), sorted(corners), atol=1e-6)


# rasterio silences this warning itself, but threads undo that for each other.
@pytest.mark.filterwarnings("ignore:.*no geotransform:UserWarning")
def test_outlines_are_the_same_for_any_chunks_and_give_the_labels_back():
    pytest.importorskip("shapely")
    mask = gaussian_filter(RNG.normal(size=(120, 150)), 2) > 0.1
    coords = {"y": 5e6 - 10.0 * np.arange(120), "x": 5e5 + 10.0 * np.arange(150)}
    named = xr.DataArray(mask, dims=("y", "x"), coords=coords)
    labels, sizes = label_scene(named)
    whole = outlines(labels.compute())
    assert [one["properties"]["cells"] for one in whole["features"]] == sizes.tolist()
    assert json.dumps(outlines(labels.chunk({"y": 33, "x": 47}))) == json.dumps(whole)
    again = rasterized(whole, named, value="label", dtype="int32")
    np.testing.assert_array_equal(again.compute(), labels)
    with pytest.raises(DataError, match="whole numbers, found float64"):
        outlines(mask * 0.5)


@pytest.mark.filterwarnings("ignore:.*no geotransform:UserWarning")
def test_points_label_the_cells_in_which_they_lie(tmp_path, monkeypatch):
    pytest.importorskip("shapely")
    monkeypatch.setattr("daskdl.predict.scenes.geojson.CHUNK", 8)
    points = RNG.uniform(0, 20, (30, 2))
    features = [
        {"geometry": {"type": "Point", "coordinates": point}, "properties": {"class": i % 3}}
        for i, point in enumerate(points.tolist())
    ]
    features.append({"geometry": None, "properties": None})  # as GeoJSON allows
    path = tmp_path / "points.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    expected = np.full((20, 21), -1, np.int8)
    for i, (x, y) in enumerate(points):
        expected[int(y), int(x)] = i % 3
    labels = rasterized(path, (20, 21), value="class", fill=-1, dtype="int8")
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), expected)
    with pytest.raises(DataError, match="feature 0: expected a whole number as property 'kind'"):
        rasterized(path, (20, 21), value="kind")
    with pytest.raises(DataError, match="which fits into uint8, found 300; dtype="):
        rasterized(path, (20, 21), value=300)
    with pytest.raises(DataError, match=r"a file of GeoJSON, found .*missing\.geojson"):
        rasterized(tmp_path / "missing.geojson", (20, 21))
    path.write_text("[]")
    with pytest.raises(DataError, match=r"a FeatureCollection of GeoJSON, found \[\]"):
        rasterized(path, (20, 21))
    for geometry in ({"type": "Circle", "coordinates": [1, 2]}, {"type": "Point"}, "POINT (1 2)"):
        with pytest.raises(DataError, match="feature 0: expected a geometry of GeoJSON"):
            rasterized({"features": [{"geometry": geometry}]}, (20, 21))
