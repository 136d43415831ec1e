"""A stretch of simulated radar scans, one ODIM_H5 volume a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from daskdl.errors import SettingsError
from nowcast.simulate.false_echo import FalseEcho, disturb
from nowcast.simulate.odim import PolarSweep, write_odim_volume
from nowcast.simulate.radar import A, B, Radar
from nowcast.simulate.weather import Weather

#: Time of the first scan, UTC; of no meaning.
START = datetime(2020, 6, 1)
#: Kilometres between the radars of one weather.
APART = 100.0
#: Seconds by which each of them begins its volumes after the one before.
LATER = 120.0


def simulate(
    folder: Path,
    *,
    hours: float = 24,
    step_minutes: int = 10,
    seed: int = 0,
    radar: Radar | None = None,
    name: str = "Simulated radar",
    false_echo: FalseEcho | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write the scans of simulated weather; return their paths in the order of time.

    The same arguments give the same files, whatever was in the folder before. Each is marked as
    simulated: in its name, in ``/what/source`` and, as ODIM has it, in ``/how/simulated``.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    hours, step_minutes : float, int
        Length of the simulation and time between volumes.
    seed : int
        Of the weather and of the radar's noise.
    name : str
        Of the radar, in every file.
    false_echo : FalseEcho, optional
        Echo that is no rain, and losses of rain's echo on its way. Files then have
        RHOHV, PHIDP and SQIH too, and the truth: DBZH_TRUE, the rain alone, and FALSE_ECHO, a
        `Kind`.

    Examples
    --------
    >>> radar = Radar(gates=20, elevations=(0.5,))
    >>> [scan.suffix for scan in simulate(Path("scans"), hours=0.2, step_minutes=5, radar=radar)]
    ['.h5', '.h5']
    """
    radar, folder = radar or Radar(), Path(folder)
    total = int(hours * 60 // step_minutes) if step_minutes >= 1 else 0
    busy = len(radar.elevations) * radar.turn
    if total < 1 or seed < 0 or busy > step_minutes * 60:
        raise SettingsError(
            f"simulate: expected hours for one scan at least, a seed of 0 or more and {busy:g} s "
            f"between volumes, found {hours:g} h every {step_minutes} min with seed {seed}"
        )
    weather = Weather(seed, hours)
    paths = []
    for number in range(total):
        seconds = number * step_minutes * 60.0 + radar.late
        time = START + timedelta(seconds=seconds)
        rng = np.random.default_rng((seed, 3, number))
        sweeps = []
        for turn, elevation in enumerate(radar.elevations):
            later = turn * radar.turn
            start = time + timedelta(seconds=later)
            sweep = PolarSweep(elevation, start, radar.turn, radar.gate_length, np.empty((0, 0)))
            if false_echo is None:
                dbz = radar.measure(weather, seconds + later, elevation, rng)
                sweeps.append(replace(sweep, dbz=dbz))
            else:
                echo = radar.echo(weather, seconds + later, elevation)
                seen = disturb(echo, radar, elevation, false_echo, (seed, number, turn))
                sweeps.append(replace(sweep, dbz=seen.dbz, others=seen.moments()))
        paths.append(folder / f"simulated_{time:%Y%m%d%H%M}.h5")
        write_odim_volume(
            paths[-1],
            sweeps,
            time=time,
            site=(radar.latitude, radar.longitude, radar.height),
            source=f"PLC:{name},CMT:simulated data",
            how=_how(radar, time, busy),
        )
        if progress is not None:
            progress(number + 1, total)
    return paths


def row_of_radars(count: int, bright_band: float = 0.0) -> list[Radar]:
    """Return radars on one meridian that look at the same weather, from south to north."""
    import pyproj

    middle, earth = Radar(bright_band=bright_band), pyproj.Geod(ellps="WGS84")
    radars = []
    for number in range(count):
        north = 1000.0 * APART * (number - (count - 1) / 2)
        _, latitude, _ = earth.fwd(middle.longitude, middle.latitude, 0.0, north)
        late = LATER * (number % 5)
        radars.append(replace(middle, latitude=latitude, north=north, late=late))
    return radars


def _how(radar: Radar, time: datetime, busy: float) -> dict[str, str | float | int]:
    """Return the radar's properties that ODIM asks for."""
    start = (time - datetime(1970, 1, 1)) // timedelta(seconds=1)
    return {
        "simulated": "True",
        "task": "simulated rain",
        "software": "nowcast",
        "startepochs": start,
        "endepochs": start + round(busy),
        "beamwidth": radar.beamwidth,
        "beamwH": radar.beamwidth,
        "wavelength": 5.3,
        "rpm": 60.0 / radar.turn,
        "NEZH": radar.noise_at_1km,
        "zr_a": A,
        "zr_b": B,
    }
