"""A stretch of simulated radar scans, one ODIM_H5 volume a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from daskdl.errors import SettingsError
from nowcast.simulate.odim import write_volume
from nowcast.simulate.radar import Radar
from nowcast.simulate.weather import Weather

#: Time of the first scan, UTC; of no meaning.
START = datetime(2020, 6, 1)
#: What every file says of where it comes from.
SOURCE = "NOD:xxsim,PLC:Simulated,CMT:simulated data"


def simulate(
    folder: Path,
    *,
    hours: float = 24,
    step_minutes: int = 10,
    seed: int = 0,
    radar: Radar | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write the scans of simulated weather.

    The same arguments give the same data, whatever was in the folder before.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    hours, step_minutes : float, int
        Length of the simulation and time between volumes.
    seed : int
        Of the weather and of the radar's noise.
    radar : Radar, optional
    progress : function of (done, total), optional

    Returns
    -------
    list of paths, in the order of time
    """
    if hours <= 0 or step_minutes < 1:
        raise SettingsError(
            f"simulate: expected some hours and a step of whole minutes, found {hours} h and "
            f"{step_minutes} min"
        )
    radar, weather = radar or Radar(), Weather(seed, hours)
    folder.mkdir(parents=True, exist_ok=True)
    total, paths = int(hours * 60 // step_minutes), []
    for number in range(total):
        seconds = number * step_minutes * 60
        time = START + timedelta(seconds=seconds)
        rng = np.random.default_rng((seed, 3, number))
        sweeps = [(e, radar.measure(weather, seconds, e, rng)) for e in radar.elevations]
        paths.append(folder / f"simulated_{time:%Y%m%d%H%M}.h5")
        write_volume(
            paths[-1],
            sweeps,
            time=time,
            site=(radar.latitude, radar.longitude, radar.height),
            gate_length=radar.gate_length,
            source=SOURCE,
            how={"simulated": "True", "wavelength": 5.3, "beamwidth": 1.0},
        )
        if progress is not None:
            progress(number + 1, total)
    return paths
