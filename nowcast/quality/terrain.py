"""Blockage of a radar's beam by a terrain model.

The fraction of the beam's cross-section below the ground follows Bech et al. (2003, Journal of
Atmospheric and Oceanic Technology 20, 845-855, equation 2 and appendix), for a beam of one degree
in the standard atmosphere; a gate behind a hill loses as much as any gate before it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyproj
from numpy.typing import NDArray

from daskdl.errors import DataError, needed
from nowcast.radar.polar.geometry import BEAMWIDTH, Geometry
from nowcast.rain.grid import Grid
from nowcast.rain.store import expecting

if TYPE_CHECKING:
    import xarray as xr

# Largest loss in dB; a ray that loses more sees nothing.
ALL = 40.0
# Largest fraction of rays blocked in their first kilometres; above it the antenna is too low.
BURIED = 0.5


def terrain_loss(path: Path, geometry: Geometry) -> NDArray[np.float32]:
    """Return the loss in dB by terrain at each gate, (rays, gates) float32.

    The model has heights in metres above the sea: GeoTIFF (which needs rasterio), netCDF or zarr.
    Raises DataError if it is invalid, of another place, or its ground is above the antenna.
    """
    along, turn = geometry.ground_range(geometry.range), np.radians(geometry.azimuth)[:, None]
    ground = _sampled(path, geometry, along * np.sin(turn), along * np.cos(turn))
    beam = geometry.site.altitude + geometry.height_along(geometry.range)
    blocked = beam_blockage(ground, beam, geometry.range * np.radians(BEAMWIDTH / 2))
    blocked = np.maximum.accumulate(np.nan_to_num(blocked), axis=1)
    if (blocked[:, geometry.range < 3000] >= 1).any(axis=1).mean() > BURIED:
        raise DataError(
            f"{path}: expected an antenna above the ground, found it at "
            f"{geometry.site.altitude:.0f} m and the ground at {np.nanmedian(ground[:, 0]):.0f} m; "
            "the files' altitude of the radar is wrong, or the terrain model's place"
        )
    with np.errstate(divide="ignore"):
        return np.minimum(-10 * np.log10(1 - blocked), ALL).astype(np.float32)


def beam_blockage(
    ground: NDArray[np.float64], beam: NDArray[np.float64], radius: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the fraction of a beam's circle, 0 to 1, below the ground; all in metres."""
    above = np.clip((ground - beam) / np.maximum(radius, 1.0), -1, 1)
    return (above * np.sqrt(1 - above**2) + np.arcsin(above)) / np.pi + 0.5


def _sampled(
    path: Path, geometry: Geometry, x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the terrain's height at places in metres east and north of a radar; NaN outside."""
    import xarray as xr

    site = geometry.site
    plane = Grid.around(site.latitude, site.longitude, size=(1, 1), spacing=1.0).crs
    with expecting(path, "a terrain model (GeoTIFF, netCDF or zarr)", "give another file"):
        heights, crs = _from_geotiff(path) if path.suffix in (".tif", ".tiff") else _from_cf(path)
    x, y = pyproj.Transformer.from_crs(plane, crs, always_xy=True).transform(x, y)
    places = dict(zip(heights.dims, (y, x), strict=True))
    inside = heights.isel({axis: _around(heights[axis], at) for axis, at in places.items()}).load()
    heights.close()
    if min(inside.shape) < 2 or not np.isfinite(inside).any():
        raise DataError(
            f"{path}: expected heights around the radar at {site}, found none there; give a "
            "terrain model of its surroundings"
        )
    gates = {axis: xr.Variable(("ray", "gate"), at) for axis, at in places.items()}
    return np.asarray(inside.interp(gates).values, np.float64)


def _around(axis: xr.DataArray, places: NDArray[np.float64]) -> slice:
    """Return the slice of an axis that encloses some places."""
    step = np.abs(np.diff(axis.values[:2])).max(initial=0.0)
    wanted = (axis.values >= places.min() - step) & (axis.values <= places.max() + step)
    at = np.flatnonzero(wanted)
    return slice(at[0], at[-1] + 1) if at.size else slice(0)


def _from_cf(path: Path) -> tuple[xr.DataArray, object]:
    """Return heights (y, x) and projection of a netCDF file or zarr store."""
    import xarray as xr

    opened = (
        xr.open_dataset(path, engine="zarr", consolidated=False) if path.is_dir()
        else xr.open_dataset(path, engine="h5netcdf")
    )  # fmt: skip
    dataset = opened.squeeze(drop=True)
    fields = [v for v in dataset.data_vars.values() if v.ndim == 2 and v.dtype.kind in "iuf"]
    if len(fields) != 1 or str(fields[0].attrs.get("units", "m")) not in ("m", "meters", "metres"):
        raise ValueError(f"{len(fields)} fields in metres in {', '.join(map(str, dataset))}")
    heights = fields[0]
    heights.set_close(opened.close)
    mapping = heights.attrs.get("grid_mapping", heights.encoding.get("grid_mapping"))
    if mapping is not None:
        return heights, pyproj.CRS.from_cf(dataset[mapping].attrs)
    degrees = [dim for name in ("lat", "lon") for dim in heights.dims if str(dim).startswith(name)]
    return heights.transpose(*degrees), "EPSG:4326"


def _from_geotiff(path: Path) -> tuple[xr.DataArray, object]:
    """Return heights (y, x) and projection of a GeoTIFF."""
    import xarray as xr

    with needed(f"{path}: a terrain model in GeoTIFF needs rasterio; pip install 'daskdl[cog]'"):
        import rasterio
    with rasterio.open(path) as file:
        step = file.transform
        if file.crs is None or step.b or step.d:
            raise ValueError("no projection, or rows that run askew")
        heights = file.read(1, masked=True).astype(np.float32).filled(np.nan)
        y = step.f + step.e * (np.arange(file.height) + 0.5)
        x = step.c + step.a * (np.arange(file.width) + 0.5)
        return xr.DataArray(heights, {"y": y, "x": x}, ("y", "x")), file.crs.to_wkt()
