"""The cleaning of a sweep: steps find echo that is no rain, and it is replaced.

Steps run one after the other; each gets the result of the one before. A removed echo becomes no
echo, unless most of its surroundings are rain: then it becomes their mean, so that a spike or a
tower leaves no hole in a shower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from nowcast.quality.attenuation import Band, loss
from nowcast.quality.bright_band import COUNTED, excess
from nowcast.quality.climate import MOST, Climate
from nowcast.quality.second_trip import second_trip
from nowcast.quality.speckle import speckle
from nowcast.quality.spikes import spikes
from nowcast.quality.texture import texture
from nowcast.radar.polar.sweep import Sweep

Mask = NDArray[np.bool_]

#: Steps in the order in which they run, except that speckle runs last, so that it removes the
#: remains of other steps; a step's flag is the bit of its position.
STEPS = ("correlation", "climate", "texture", "spikes", "speckle", "second_trip", "bright_band")
#: Steps that are switched on by their data instead of their name: a climate, a freezing level.
GIVEN = ("climate", "bright_band")
#: Steps that remove more false echo than rain where truth is known (python -m ci.bench.ingest).
DEFAULT = ("texture", "spikes", "speckle", "second_trip")
#: Correlation coefficient below which the step "correlation" finds no rain.
RHOHV = 0.8
# The surroundings of an echo: every second of so many rays and gates to each side.
AROUND = 3


@dataclass(frozen=True)
class Cleaned:
    """A sweep without the echo that is no rain."""

    sweep: Sweep
    #: Bits of the steps that removed a gate's echo, or lowered it (bright band), (rays, gates).
    flags: NDArray[np.uint8]
    #: Number of gates that each step removed or lowered; ``"echo"`` is the number of all echoes.
    counts: dict[str, int]
    #: dB that obstacles and rain had taken and that were added again, (rays, gates).
    lost: NDArray[np.float32] | None = None


def clean(
    sweep: Sweep,
    steps: Sequence[str] = DEFAULT,
    rhohv: float = RHOHV,
    weakest: float = 7.0,
    climate: Climate | None = None,
    attenuation: Band | None = None,
    freezing: float | None = None,
) -> Cleaned:
    """Return a sweep without the echo that some steps find to be no rain.

    - ``sweep``: a sweep with reflectivity.
    - ``steps``: names from `STEPS`.
    - ``rhohv``: correlation coefficient below which an echo is no rain. Gates without a measured
      one stay, because it is missing first in weak rain, where most rain would be lost.
    - ``weakest``: least dBZ of an echo that counts as rain; weaker ones join no speckles.
    - ``climate``: climate for the step of that name, which also adds the loss by obstacles; rays
      behind total obstacles become missing, so that a higher sweep can replace them.
    - ``attenuation``: band of a radar; its loss by rain is added after that.
    - ``freezing``: height of 0 degrees Celsius in metres; the excess of a bright band is subtracted
      last. The sweep's site has to be known.
    """
    assert sweep.dbz is not None
    dbz = np.array(sweep.dbz, np.float32, order="C")
    flags = np.zeros(dbz.shape, np.uint8)
    counts = {"echo": int(np.count_nonzero(dbz >= weakest))}
    known = climate.of(sweep) if climate is not None and "climate" in steps else None
    for place, step in sorted(enumerate(STEPS), key=lambda item: item[1] == "speckle"):
        if step not in steps or step == "bright_band":
            continue
        if step == "climate":
            mask = None if known is None else known[0] & np.isfinite(dbz)
        else:
            mask = _false_echo(step, replace(sweep, dbz=dbz), rhohv, weakest)
        if mask is None:
            continue
        counts[step] = int(np.count_nonzero(mask & (dbz >= weakest)))
        flags[mask] |= np.uint8(1 << place)
        dbz[mask] = -np.inf
    if flags.any():
        surround(dbz, flags)
    lost = None if known is None else known[1]
    if lost is not None:
        dbz = np.where(lost > MOST, np.float32(np.nan), dbz + lost)
    if attenuation is not None:
        by_rain = loss(replace(sweep, dbz=dbz), attenuation)
        dbz = dbz + by_rain
        lost = by_rain if lost is None else lost + by_rain
    if freezing is not None:
        over = excess(replace(sweep, dbz=dbz), freezing)
        lowered = (over >= COUNTED) & (dbz >= weakest)
        flags |= np.uint8(1 << STEPS.index("bright_band")) * lowered
        counts["bright_band"] = int(np.count_nonzero(lowered))
        dbz = dbz - over
    return Cleaned(replace(sweep, dbz=dbz), flags, counts, lost)


def _false_echo(step: str, sweep: Sweep, rhohv: float, weakest: float) -> Mask | None:
    """Return the gates with false echo by one step; None if the sweep lacks its moment."""
    assert sweep.dbz is not None
    if step == "correlation":
        return None if sweep.rhohv is None else (sweep.rhohv < rhohv) & np.isfinite(sweep.dbz)
    if step == "texture":
        # In gates of 1 km the reflectivity of strong showers is as rough as ground's.
        polarimetric = sweep.rhohv is not None or sweep.phidp is not None
        return texture(sweep, weakest) if polarimetric else None
    if step == "spikes":
        return spikes(sweep.dbz, sweep.range)
    if step == "second_trip":
        return second_trip(sweep, weakest)
    return speckle(sweep.dbz >= weakest)


@jit
def surround(dbz: NDArray[np.float32], flags: NDArray[np.uint8]) -> None:
    """Replace gates with flags by the mean of the echo around, in dBZ, if half of it is echo.

    Gates that have flags or are missing do not count; the first ray is next to the last.
    """
    rays, gates = dbz.shape
    for ray in range(rays):
        for gate in range(gates):
            if not flags[ray, gate]:
                continue
            known, echo, total = 0, 0, np.float32(0)
            for side in range(-AROUND, AROUND + 1, 2):
                row = (ray + side + rays) % rays
                for near in range(gate - AROUND, gate + AROUND + 1, 2):
                    if not 0 <= near < gates or flags[row, near]:
                        continue
                    value = dbz[row, near]
                    if value > -np.inf:
                        echo += 1
                        total += value
                    known += value == value  # NaN is not
            if 2 * echo > known:
                dbz[ray, gate] = total / np.float32(echo)
