"""Skill of extrapolation from scans as they are and from cleaned scans: ci.bench.ingest --skill.

Events are the sequences of volumes in the folder of radar data, and simulated ones. CSI is over all
starts and all leads up to half an hour (up to half of a short sequence), on pixels that are known
in all frames and forecasts; the truth is the cleaned frames, or the frames as they are.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nowcast.forecasters import forecaster
from nowcast.forecasters.forecaster import frames_read
from nowcast.ingest.ingest import ingest
from nowcast.rain.store import open_rain, time_step
from nowcast.simulate import FalseEcho, Radar, simulate
from nowcast.simulate.odim import PolarSweep, write_odim_volume

THRESHOLDS, LONGEST = (0.1, 1.0), 30
# Radars of the DX files: short name in file names, latitude, longitude, metres above the sea.
DX = {"Türkheim": ("tur", 48.585, 9.783, 765.0), "Feldberg": ("fbg", 47.874, 8.004, 1517.0)}
STORES = {"as they are": "none", "cleaned": "default"}


def events(data: Path, folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield name and volumes of each event; DX files need wradlib."""
    sequences = data / "polar_sequence"
    yield "Helchteren", sorted(sequences.glob("*.hdf"))
    archive = sequences / "dwd_dx_two_radars.zip"
    for name, (short, *site) in DX.items():
        yield name, _from_dx(archive, short, tuple(site), folder / short)
    for name, hours, false_echo in (("12 h with false echo", 12, FalseEcho()), ("6 h", 6, None)):
        radar, made = Radar(), folder / f"simulated{hours}"
        yield (
            f"simulated, {name}",
            simulate(
                made, hours=hours, step_minutes=10, seed=5, radar=radar, false_echo=false_echo
            ),
        )


def _from_dx(
    archive: Path, short: str, site: tuple[float, float, float], folder: Path
) -> list[Path]:
    """Return the DX files of a radar as ODIM_H5; none without the archive or wradlib."""
    if not archive.exists() or find_spec("wradlib") is None:
        return []
    from wradlib.io import read_dx

    volumes = []
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            if f"-{short}-" in name:
                dbz, header = read_dx(files.extract(name, folder))
                dbz, time = np.where(dbz <= -32.5, -np.inf, dbz), header["datetime"]
                sweep = PolarSweep(float(np.median(header["elev"])), time, 20.0, 1000.0, dbz)
                volumes.append(folder / f"{time:%Y%m%d%H%M}.h5")
                about = {"site": site, "source": f"PLC:{short}", "how": {}}
                write_odim_volume(volumes[-1], [sweep], time=time, **about)
    return sorted(volumes)


def skill(volumes: list[Path], folder: Path) -> tuple[int, int, NDArray[np.float64]]:
    """Return the number of frames, the longest lead in minutes, CSI (threshold, truth, source)."""
    rain = []
    for clean in STORES.values():
        ingest(volumes, folder / f"{clean}.zarr", clean=clean)
        with open_rain(folder / f"{clean}.zarr") as store:
            step = int(time_step(store) / np.timedelta64(1, "m"))
            spacing = float(np.diff(store["x"].values[:2])[0]) / 1000
            rain.append(store["rain_rate"].values)
    method = forecaster("extrapolation")
    leads = min(LONGEST // step, len(rain[0]) // 2)
    count = min(frames_read(method, step), len(rain[0]) - leads)
    counts = np.zeros((len(THRESHOLDS), 2, 2, 2))
    for start in range(count, len(rain[0]) - leads + 1):
        made = [
            method.forecast(r[start - count : start], leads, spacing_km=spacing, step_minutes=step)
            for r in rain
        ]
        truth = [r[start : start + leads] for r in rain]
        known = np.isfinite(sum([*truth, *(one.rain for one in made)]))
        for t, least in enumerate(THRESHOLDS):
            for judge, source in np.ndindex(2, 2):
                wet, forecast = truth[judge][known] >= least, made[source].rain[known] >= least
                counts[t, judge, source] += (wet & forecast).sum(), (wet | forecast).sum()
    return len(rain[0]), leads * step, counts[..., 0] / np.maximum(counts[..., 1], 1)


def table(data: Path) -> Iterator[str]:
    """Yield the lines of the table."""
    heads = [f"{least:g} mm/h, {one}" for least in THRESHOLDS for one in STORES]
    yield f"{'CSI of extrapolation, judged by':44}" + "".join(f"{head:>23}" for head in heads)
    with tempfile.TemporaryDirectory() as name:
        for number, (event, volumes) in enumerate(events(data, Path(name))):
            if not volumes:
                yield f"{event}: left out, no volumes"
                continue
            frames, lead, csi = skill(volumes, Path(name) / str(number))
            for judge, words in ((1, "cleaned frames"), (0, "frames as they are")):
                row = "".join(f"{value:23.3f}" for value in csi[:, judge].ravel())
                yield f"{f'{event}, {frames} scans, +{lead} min, {words}':62}{row}"
