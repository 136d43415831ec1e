"""GeoTIFF: a scene read window by window, and a result with its place on the earth."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError, needed
from daskdl.predict.scenes.store import stored
from daskdl.predict.scenes.tiles import Tiling

Array = NDArray[Any]

#: Cells along a side of the blocks of a written file.
BLOCK = 512


class Georeference(NamedTuple):
    """Place of a raster on the earth."""

    #: Affine transform from (column, row) to coordinates.
    transform: Any
    #: Well-known text of the reference system.
    crs: str | None


@dataclass(frozen=True)
class Raster:
    """A GeoTIFF as an array (rows, columns, bands); slices are read from the file."""

    #: Path of a file, or a URL in GDAL's form.
    path: str
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    #: Shape of the file's blocks in cells.
    chunks: tuple[int, int, int]
    nodata: float | None
    place: Georeference
    ndim = 3

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Raster:
        """Read a file's shape, dtype and place."""
        rasterio = _rasterio()
        try:
            with rasterio.open(path) as file:
                crs = None if file.crs is None else file.crs.to_wkt()
                return cls(
                    os.fspath(path), (*file.shape, file.count), np.result_type(*file.dtypes),
                    (*file.block_shapes[0], file.count), file.nodata,
                    Georeference(file.transform, crs),
                )  # fmt: skip
        except rasterio.errors.RasterioIOError as error:
            raise DataError(
                f"predict, tile: expected an array, or the path of a GeoTIFF, found {path}: {error}"
            ) from error

    def __getitem__(self, slices: tuple[slice, slice, slice]) -> Array:
        rows, columns, bands = (range(n)[part] for part, n in zip(slices, self.shape, strict=True))
        window = (rows.start, rows.stop), (columns.start, columns.stop)
        with _rasterio().open(self.path) as file:
            values: Array = file.read([i + 1 for i in bands], window=window)
        return values.transpose(1, 2, 0).astype(self.dtype)


def place_of(scene: Any, scales: Sequence[Fraction]) -> Georeference | None:
    """Return the place of a scene's result, whose cells have ``scales`` cells each; maybe None.

    A DataArray needs even coordinates y and x, or rioxarray's xc and yc (y, x) of a turned or
    sheared grid, and a crs as an attribute or in rioxarray's form. Other coordinates, or a crs
    without coordinates, raise a SettingsError.
    """
    coords = {*getattr(scene, "coords", ())}
    if isinstance(scene, Raster):
        transform, crs = scene.place
    elif coords & {"y", "x", "yc", "xc", "spatial_ref"}:
        from affine import Affine

        names = next((two for two in (("x", "y"), ("xc", "yc")) if {*two} <= coords), ())
        values = [np.asarray(scene[name], float) for name in names]
        if values and values[0].ndim == 1:
            values = [values[0][None], values[1][:, None]]
        # Steps of x and of y, from column to column and from row to row.
        steps = [np.diff(v, axis=axis) for v in values if v.ndim == 2 for axis in (1, 0)]
        even = all(not step.size or np.allclose(step, step.flat[0]) for step in steps)
        a, b, d, e = [float(s.flat[0]) if s.size else 0.0 for s in steps] or [0.0] * 4
        if not even or a * e == b * d:
            raise SettingsError(
                "predict, out, and outlines and rasterized: expected even coordinates y and x, or "
                f"xc and yc, found coordinates {sorted(map(str, coords))}, which do not say where "
                "each cell lies; give others, or drop them to work in columns and rows"
            )
        x, y = (value.flat[0] for value in values)
        transform = Affine(a, b, x - (a + b) / 2, d, e, y - (d + e) / 2)
        crs = scene.attrs.get("crs")
        if crs is None and "spatial_ref" in coords:
            crs = scene["spatial_ref"].attrs.get("crs_wkt")
    else:
        return None
    down, across = map(float, scales)
    return Georeference(transform @ type(transform).scale(across, down), crs)


def written(
    tiling: Tiling, out: str, token: str, place: Georeference | None, client: Any
) -> Raster:
    """Write a result as a Cloud-optimised GeoTIFF; return it.

    Its tiles are kept in a zarr array, ``<out>.zarr``, until all are there: the same call resumes
    with them after an interruption.
    """
    layout, rasterio = tiling.layout, _rasterio()
    order = layout.order(tiling.common.channels)
    if len(layout.image) != 2 or layout.samples or order[:2] != [*layout.image]:
        raise SettingsError(
            f"predict, out: expected rows and columns, and then channels, for a GeoTIFF, found "
            f"axes {order} of the scene; write a zarr array"
        )
    if "://" in out or Path(out).exists():
        raise SettingsError(
            f"predict, out: expected a local path with nothing at it for a GeoTIFF, found "
            f"{out}; remove it, or take another name"
        )
    parts = f"{out}.zarr"
    array = stored(tiling, parts, token, None, client)
    dtype = np.dtype("int32") if array.dtype == np.int64 else array.dtype  # classes
    bands = array.shape[2] if array.ndim == 3 else 1
    profile: dict[str, Any] = {
        "driver": "GTiff", "dtype": dtype, "count": bands, "height": array.shape[0],
        "width": array.shape[1], "tiled": True, "blockxsize": BLOCK, "blockysize": BLOCK,
        "BIGTIFF": "IF_SAFER",
    }  # fmt: skip
    if place is not None:
        profile |= {"transform": place.transform, "crs": place.crs}
    if tiling.nodata is not None:
        profile["nodata"] = float("nan") if dtype.kind == "f" else -1
    draft, last = f"{out}.plain.tif", f"{out}.partial.tif"
    try:
        with rasterio.open(draft, "w", **profile) as file:
            for row, column in itertools.product(
                *(range(0, n, c) for n, c in zip(array.shape[:2], array.chunks[:2], strict=True))
            ):
                part = array[row : row + array.chunks[0], column : column + array.chunks[1]]
                part = part.reshape(*part.shape[:2], bands).transpose(2, 0, 1).astype(dtype)
                file.write(
                    part, window=((row, row + part.shape[1]), (column, column + part.shape[2]))
                )
        from rasterio.shutil import copy

        copy(draft, last, driver="COG", compress="deflate", BIGTIFF="IF_SAFER")
        os.replace(last, out)
    finally:
        for rest in (draft, last):
            Path(rest).unlink(missing_ok=True)
    shutil.rmtree(parts)
    return Raster.of(out)


def _rasterio() -> Any:
    with needed("predict, tile: GeoTIFF needs rasterio ({error}); pip install 'daskdl[cog]'"):
        import rasterio
    return rasterio
