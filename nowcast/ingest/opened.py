"""A volume that xradar has opened, put on a grid as by an ingest of its file."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from daskdl.errors import DataError
from nowcast.ingest.rain_map import clean_sweeps, combine, map_sweeps, placed
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.header import Format
from nowcast.radar.polar.cuts import lowest_sweeps
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid

#: dBZ of what readers give for "no echo".
NO_ECHO = -31.0


def grid(volume: xr.DataTree | xr.Dataset, grid: Grid, **settings: Any) -> xr.Dataset:
    """Put the rain of an open volume on a grid, with the weights of ``nowcast ingest``.

    Parameters
    ----------
    volume : DataTree or Dataset
        xradar's; a Dataset is one sweep.
    grid : Grid
        For instance ``nowcast.Grid.around(...)``.
    **settings
        Settings of an ingest: ``sweeps``, ``combine``, ``clean``, ``rhohv``, ``fill``, ``site``,
        ``zr`` ...

    Returns
    -------
    Dataset
        ``rain_rate (time, y, x)`` in mm h-1 of one time, as in a rain store.

    Raises
    ------
    DataError
        When there is no sweep with reflectivity or no site, or the radar reaches no cell.
    """
    rules = IngestSettings.of(**settings)
    if isinstance(volume, xr.Dataset):
        volume = xr.DataTree(volume, children={"sweep_0": xr.DataTree(volume)})

    def classify(moment: xr.DataArray) -> Any:
        dbz = moment.attrs.get("units", "dBZ").lower() == "dbz"
        return moment.values <= NO_ECHO if dbz else moment.isnull().values, moment.isnull().values

    read = lowest_sweeps(volume, classify, rules.sweeps, rules.moment)
    sweeps = [sweep for sweep in read if sweep.dbz is not None]
    if not sweeps:
        raise DataError(
            "grid: expected a sweep with reflectivity by azimuth and range, found none; open the "
            "volume with xradar, such as xradar.io.open_odim_datatree"
        )
    cleaned = clean_sweeps(placed(sweeps, rules, None, "grid"), rules, Format.CFRADIAL)
    maps, _ = map_sweeps([c.sweep for c in cleaned], grid, rules, "grid")
    time = np.array([min(sweep.time for sweep in sweeps)])
    described = {"title": "Rain of one volume", "source": "weather radar"}
    rain = combine(maps, rules.combine)[np.newaxis]
    return rain_dataset(grid, time, rain, attributes={}, global_attributes=described)
