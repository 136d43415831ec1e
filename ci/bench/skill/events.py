"""The real events: the paths of their files, their rain stores, and the frames of a start."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from daskdl.errors import DataError

#: Folder of the rain stores, unless another one is named.
CACHE = Path(tempfile.gettempdir()) / "nowcast-skill"
#: Side of the crops in pixels; a smaller grid is taken whole.
CROP = 512
#: Rain rate of a wet pixel in mm h-1, and least wet part of the crop at a start with rain.
WET, LEAST_WET = 0.1, 0.02


@dataclass(frozen=True)
class Source:
    """Files of an event of one radar or composite.

    Parameters
    ----------
    name : str
        As printed, such as "knmi-20100826".
    radar : str
        No method that is scored on this event may be fitted on this radar.
    folder : str
        Folder or file below the folder of radar data.
    """

    name: str
    radar: str
    folder: str


SOURCES = (
    Source("knmi-20100826", "knmi", "knmi/2010"),
    Source("bom66-20201031", "bom66", "bom/prcp-c10"),
    Source("fmi-20160928", "fmi", "fmi/20160928"),
    Source("mch-20150515", "mch", "mch/20150515"),
    Source("mch-20160711", "mch", "mch/20160711"),
    Source("opera-20180824", "opera", "opera/20180824"),
)
#: Folders of more events, a file each, and their radar.
ARCHIVE = {
    "italy_campania": "campania",
    "italy_trentino": "trentino",
    "netherlands_knmi": "knmi",
    "italy_emilia": "emilia",
    "france_meteonet": "meteonet",
    "germany_ry": "ry",
}


@dataclass(frozen=True)
class Event:
    """Frames of an event on its crop.

    Parameters
    ----------
    name, radar : str
    time : ndarray, (frame,) datetime64[ns]
    rain : ndarray, (frame, y, x) float32
        Rain rate in mm h-1, NaN where missing.
    step : int
        Minutes between frames.
    spacing : float
        Size of the pixels, in km.
    """

    name: str
    radar: str
    time: NDArray[np.datetime64]
    rain: NDArray[np.float32]
    step: int
    spacing: float

    def starts(self, n_in: int, leads: Sequence[int], every: int) -> list[int]:
        """Return the index of the last input frame of each start with rain.

        Parameters
        ----------
        n_in : int
            Number of input frames.
        leads : sequence of int
            Lead times in minutes; the last one has to lie within the event.
        every : int
            Minutes between two starts.
        """
        minutes, ahead = self.time.astype("datetime64[m]").astype(np.int64), max(leads) // self.step
        return [
            index
            for index in range(n_in - 1, len(self.time) - ahead)
            if minutes[index] % every == 0
            and np.mean(self.rain[index] >= WET) >= LEAST_WET
            # no gap from the first input frame to the last one that is forecast
            and minutes[index + ahead] - minutes[index - n_in + 1] == self.step * (ahead + n_in - 1)
        ]


def load(source: Source, data: Path, cache: Path) -> Event:
    """Read an event from its rain store in the cache, which is made if it is missing."""
    from nowcast.ingest.ingest import ingest
    from nowcast.rain.store import open_rain, time_step

    store = cache / f"{source.name}.zarr"
    folder = data / source.folder
    if not store.exists():
        if not folder.exists():
            raise DataError(f"{folder}: expected the files of {source.name}, found nothing there")
        ingest([folder], store)
    with open_rain(store) as dataset:
        rain = rainiest(dataset["rain_rate"]).values.astype(np.float32, copy=False)
        step = int(time_step(dataset) / np.timedelta64(60, "s"))
        spacing = float(np.abs(np.diff(dataset["x"].values)).mean()) / 1000
        return Event(source.name, source.radar, dataset["time"].values, rain, step, spacing)


def available(data: Path, cache: Path) -> list[Source]:
    """Return the events whose files or stores exist, events of the archive last."""
    archived = [
        Source(f"{radar}-{file.stem}", radar, str(file.relative_to(data)))
        for folder, radar in ARCHIVE.items()
        for file in sorted((data / "archive" / folder).glob("*.nc"))
    ]
    return [
        source
        for source in [*SOURCES, *archived]
        if (data / source.folder).exists() or (cache / f"{source.name}.zarr").exists()
    ]


def loaded(data: Path, cache: Path, wanted: Callable[[Source], bool]) -> Iterator[Event]:
    """Yield the wanted events; one that cannot be read is left out with a message."""
    cache.mkdir(parents=True, exist_ok=True)
    for source in filter(wanted, available(data, cache)):
        try:
            yield load(source, data, cache)
        except DataError as error:
            print(f"{source.name}: left out: {error}", file=sys.stderr, flush=True)


def rainiest(rain: xr.DataArray) -> xr.DataArray:
    """Return the crop with the most wet pixels in a sample of the frames, in steps of 32."""
    wet = (np.asarray(rain[:: max(1, len(rain) // 12)]) >= WET).sum(0)
    height, width = np.minimum(CROP, wet.shape)
    sums = sliding_window_view(wet, (height, width))[::32, ::32].sum((2, 3))
    y, x = 32 * np.argwhere(sums == sums.max())[-1]
    return rain[:, y : y + height, x : x + width]
