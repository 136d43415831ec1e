"""Retention: a watch removes old forecasts, the products beside them, and old frames."""

from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np

from daskdl.files import remove
from nowcast.live.products import PRODUCTS
from nowcast.live.rolling import start_of
from nowcast.rain import writer
from nowcast.rain.store import open_rain, write_zarr


def bound_forecasts(out: Path, keep: np.timedelta64) -> None:
    """Remove the forecasts of a folder that start so much before the newest one."""
    paths = sorted((out / "forecasts").glob("*.nc"))
    for path in paths[:-1]:
        if start_of(path) < start_of(paths[-1]) - keep:
            for name in PRODUCTS:
                for product in (out / name).glob(f"{path.stem}*"):
                    remove(product)
            remove(path)


def keep_frames(store: Path, kept: np.ndarray) -> None:
    """Put a store with some of the frames in the place of one."""
    with writer.locked(store), open_rain(store) as rain:
        # Another id: who has the old store open is told to open it again.
        fewer = rain.isel(time=np.flatnonzero(kept)).assign_attrs(id=uuid.uuid4().hex)
        encoding = writer.encoding_per_time(fewer)
        for name in encoding:
            fewer[name].load()  # Dask has a chunk a time, the store one for many
        write_zarr(fewer, store, encoding=encoding)
