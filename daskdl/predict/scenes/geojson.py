"""GeoJSON: outlines of a scene's objects, and labels of its cells from polygons and points."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, needed
from daskdl.predict.scenes.geotiff import Raster, place_of

Array = NDArray[Any]

#: Cells along a side of the chunks of labels.
CHUNK = 1024


def outlines(labels: Any, like: Any = None) -> dict[str, Any]:
    """Return the outlines of objects as a GeoJSON FeatureCollection; chunks do not change it.

    Cells that touch only at a corner are parts of a MultiPolygon. Coordinates are in the scene's
    reference system, or columns and rows without one.

    Parameters
    ----------
    labels : array (rows, columns) of ints, of Dask, zarr, numpy or xarray
        Labels of :func:`daskdl.predict.label_scene`, or classes; 0 is no object.
    like : DataArray or path of a GeoTIFF, optional
        Scene with the cells' coordinates; by default the labels' own.

    Returns
    -------
    dict
        For each object, in the order of numbers, its geometry and the properties ``label`` and
        ``cells``; ``json.dump`` writes it.

    Raises
    ------
    DataError
        When labels have another form.
    MissingExtraError
        Without rasterio and shapely.

    Examples
    --------
    >>> from daskdl.predict import outlines
    >>> features = outlines(np.array([[0, 2, 2], [0, 2, 0]]))["features"]
    >>> features[0]["properties"], features[0]["geometry"]["coordinates"][0][:3]
    ({'label': 2, 'cells': 3}, ((1.0, 0.0), (1.0, 2.0), (2.0, 2.0)))
    """
    import dask
    import dask.array as da

    affine, _, shapely = _packages()
    transform = _transform(labels if like is None else like)
    cells = getattr(labels, "data", labels) if hasattr(labels, "dims") else labels
    if getattr(cells, "ndim", 0) != 2 or cells.dtype.kind not in "iub":
        raise DataError(
            f"outlines: expected labels (rows, columns), whole numbers, found "
            f"{getattr(cells, 'dtype', type(cells).__name__)} of shape {np.shape(cells)}"
        )
    cells = cells if isinstance(cells, da.Array) else da.from_array(cells)
    ends = [np.cumsum((0, *sizes)).tolist() for sizes in cells.chunks]
    blocks, task = cells.to_delayed(), dask.delayed(_pieces)
    traced = dask.compute(
        *(task(blocks[i, j], ends[0][i], ends[1][j]) for i, j in np.ndindex(cells.numblocks))
    )
    by_label = defaultdict(list)
    for label, piece in (one for some in traced for one in some):
        by_label[label].append(piece)
    features = []
    for label, pieces in sorted(by_label.items()):
        # Corners of chunks on straight lines vanish if a ring begins at a real corner.
        whole = shapely.union_all([shapely.geometry.shape(piece) for piece in pieces])
        whole = whole.normalize().simplify(0)
        placed = _moved(whole, transform @ affine.Affine.translation(-1, -1))
        feature = {"type": "Feature", "geometry": shapely.geometry.mapping(placed)}
        features.append({**feature, "properties": {"label": label, "cells": round(whole.area)}})
    return {"type": "FeatureCollection", "features": features}


def _pieces(block: Array, row: int, column: int) -> list[tuple[int, Any]]:
    """Return each label of a block with the outline of a piece, in cells of the scene plus 1.

    The 1 prevents that a block's transform is the identity, since rasterio warns about that.
    """
    affine, features, _ = _packages()
    numbers, codes = np.unique(block, return_inverse=True)
    codes = codes.reshape(block.shape).astype(np.int32)
    place = affine.Affine.translation(column + 1, row + 1)
    shapes = features.shapes(codes, mask=np.asarray(block) != 0, transform=place)
    return [(int(numbers[int(code)]), piece) for piece, code in shapes]


def rasterized(
    features: Any, like: Any, value: str | int = 1, fill: int = 0, dtype: Any = "uint8"
) -> Any:
    """Return cells' labels from polygons, lines and points, lazily, as targets of a training.

    A cell whose centre lies in a polygon gets the polygon's value; of several polygons the last one
    counts. The cell of a point gets the point's value.

    Parameters
    ----------
    features : mapping, or path of a GeoJSON file
        A FeatureCollection in the coordinates of ``like``, or in columns and rows without them.
    like : DataArray, path of a GeoTIFF, or (rows, columns)
        The scene.
    value : str or int
        Name of the property with the class, or one class for all.
    fill : int
        Value of all other cells: 0 for a background, or the ``ignore_index`` of a loss if little is
        labelled, for instance by points.
    dtype : numpy.dtype

    Returns
    -------
    dask Array (rows, columns)

    Raises
    ------
    DataError
        When there are no features, or they have no such property that ``dtype`` can hold.
    MissingExtraError
        Without rasterio and shapely.

    Examples
    --------
    >>> from daskdl.predict import rasterized
    >>> square = {"type": "Polygon", "coordinates": [[[1, 0], [3, 0], [3, 2], [1, 2], [1, 0]]]}
    >>> rasterized({"features": [{"geometry": square, "properties": {}}]}, (2, 4)).compute()
    array([[0, 1, 1, 0],
           [0, 1, 1, 0]], dtype=uint8)
    """
    import dask.array as da

    _, _, shapely = _packages()
    if not isinstance(features, Mapping):
        try:
            features = json.loads(Path(features).read_text())
        except (OSError, ValueError) as error:
            raise DataError(f"rasterized: expected a file of GeoJSON, found {error}") from error
    if not isinstance(features, Mapping) or not isinstance(features.get("features"), list):
        raise DataError(
            f"rasterized: expected a FeatureCollection of GeoJSON, found {features!r:.80}"
        )
    like = like if isinstance(like, tuple) or hasattr(like, "shape") else Raster.of(like)
    transform = _transform(like)
    shapes = []
    for i, one in enumerate(features["features"]):
        if one["geometry"] is None:  # allowed by GeoJSON, also without properties
            continue
        label = (one.get("properties") or {}).get(value) if isinstance(value, str) else value
        fits = isinstance(label, int) and abs(label) < 1 << 31
        if not fits or np.array(label).astype(dtype) != label:
            raise DataError(
                f"rasterized, feature {i}: expected a whole number as property {value!r}, which "
                f"fits into {np.dtype(dtype)}, found {label!r}; dtype= takes another type"
            )
        try:
            shape = _moved(shapely.geometry.shape(one["geometry"]), ~transform)
        except Exception as error:  # the library raises many kinds
            raise DataError(
                f"rasterized, feature {i}: expected a geometry of GeoJSON, such as a Polygon, "
                f"found {one['geometry']!r:.80} ({error}); mend it or leave it out"
            ) from error
        shapes.append((shape, label))
    named = hasattr(like, "sizes")
    shape = (like.sizes["y"], like.sizes["x"]) if named else getattr(like, "shape", like)[:2]
    boxes = np.array([one.bounds for one, _ in shapes]).reshape(-1, 4)

    def drawn(block_info: Any) -> Array:
        (top, bottom), (left, right) = block_info[None]["array-location"]
        affine, draw, _ = _packages()
        near = (boxes[:, 0] <= right) & (boxes[:, 2] >= left)
        near &= (boxes[:, 1] <= bottom) & (boxes[:, 3] >= top)
        result: Array = np.full((bottom - top, right - left), fill, dtype)
        some = [shapes[i] for i in np.flatnonzero(near)]
        if some:
            place = affine.Affine.translation(left, top)
            result[...] = draw.rasterize(some, result.shape, fill, transform=place, dtype="int32")
        return result

    chunks = da.core.normalize_chunks(CHUNK, shape)
    return da.map_blocks(drawn, chunks=chunks, dtype=dtype, meta=np.empty((0, 0), dtype))


def _transform(like: Any) -> Any:
    """Return the transform from (column, row) to coordinates; maybe the identity."""
    if not hasattr(like, "shape") and not isinstance(like, tuple):
        like = Raster.of(like)
    place = place_of(like, (Fraction(1), Fraction(1)))
    return _packages()[0].Affine.identity() if place is None else place.transform


def _moved(shape: Any, t: Any) -> Any:
    """Return a geometry after an affine transform."""
    return _packages()[2].affinity.affine_transform(shape, [t.a, t.b, t.d, t.e, t.c, t.f])


def _packages() -> tuple[Any, Any, Any]:
    """Return affine, rasterio.features and shapely."""
    with needed(
        "outlines of GeoJSON need rasterio and shapely ({error}); pip install 'daskdl[cog]'"
    ):
        import affine
        import rasterio.features
        import shapely.affinity
    return affine, rasterio.features, shapely
