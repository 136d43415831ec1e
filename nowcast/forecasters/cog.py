"""Forecasts as Cloud-optimised GeoTIFF: a file of the rain rate, and one for each threshold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError
from daskdl.files import replacing
from nowcast.rain.utc import utc_text

if TYPE_CHECKING:
    import xarray as xr

ENDING = ".tif"


def require_rasterio() -> None:
    """Raise an error that names the extra when rasterio is missing."""
    try:
        import rasterio  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"Cloud-optimised GeoTIFF needs rasterio ({error}); pip install 'daskdl[nowcast,cog]'"
        ) from error


def write_cog(forecast: xr.Dataset, path: Path) -> list[Path]:
    """Write a forecast as Cloud-optimised GeoTIFF, north up, a band for each lead time.

    - ``forecast``: see `nowcast.forecasters.dataset.forecast_dataset`.
    - ``path``: file of the rain rate in mm h-1; probabilities to reach 1 mm h-1 go to
      ``<stem>_probability_1mmh.tif`` beside it, and so on.
    - returns: the files, each there whole or not at all; the rain rate's is written last.
    """
    fields = {}
    if "exceedance_probability" in forecast:
        for threshold in forecast["threshold"].values.tolist():
            name = path.with_name(f"{path.stem}_probability_{threshold:g}mmh{ENDING}")
            fields[name] = forecast["exceedance_probability"].sel(threshold=threshold)
    fields[path] = forecast["rain_rate"]
    for file, field in fields.items():
        with replacing(file) as temporary:
            _write(forecast, field, temporary)
    return list(fields)


def _write(forecast: xr.Dataset, field: xr.DataArray, path: Path) -> None:
    import rasterio
    from rasterio.shutil import copy

    y, x = forecast["y"].values, forecast["x"].values
    dy, dx = float(y[1] - y[0]), float(x[1] - x[0])
    bands: NDArray[np.float32] = field.values[:, ::-1]  # rows of a store go north
    profile: dict[str, Any] = {
        "driver": "GTiff", "dtype": "float32", "count": len(bands), "height": len(y),
        "width": len(x), "nodata": float("nan"), "crs": forecast["crs"].attrs["crs_wkt"],
        "transform": rasterio.Affine(dx, 0, x[0] - dx / 2, 0, -dy, y[-1] + dy / 2),
    }  # fmt: skip
    kept = ("title", "source", "institution", "Conventions", "simulated")
    tags = {name: str(forecast.attrs[name]) for name in kept if name in forecast.attrs}
    start = forecast["forecast_reference_time"].values
    with rasterio.MemoryFile() as memory:
        with memory.open(**profile) as file:
            file.write(bands)
            file.update_tags(forecast_reference_time=f"{utc_text(start)}Z", **tags)
            for number, time in enumerate(forecast["time"].values, 1):
                minutes = (time - start) / np.timedelta64(60, "s")
                file.set_band_description(number, f"+{minutes:g} min, {utc_text(time)}Z")
                file.update_tags(number, units=field.attrs["units"], valid_time=utc_text(time))
        # The floating-point predictor is GDAL's 3.
        options = {"compress": "deflate", "predictor": "3", "overview_resampling": "average"}
        with memory.open() as file:
            copy(file, path, driver="COG", **options)
