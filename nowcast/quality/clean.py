"""The cleaning of a sweep: steps that find echo that is no rain, and what takes its place.

Steps run one after the other, each on what the ones before it left. An echo that was taken out
becomes no echo, unless most of what is around it is rain: then the mean of that takes its place, so
that a spike or a tower leaves no hole in a shower.
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

#: In the order in which they run, but for speckle, which comes last and so takes what others left
#: over; the flag of each is the bit of its place.
STEPS = ("correlation", "climate", "texture", "spikes", "speckle", "second_trip", "bright_band")
#: Those that are given something instead of being named: a climate, a freezing level.
GIVEN = ("climate", "bright_band")
#: Those that remove more false echo than rain where the truth is known (python -m ci.bench.ingest).
DEFAULT = ("texture", "spikes", "speckle", "second_trip")
#: Correlation coefficient below which an echo is no rain by the step of that name.
RHOHV = 0.8
# The surroundings of an echo: so many rays and gates to each side, every second of them.
AROUND = 3


@dataclass(frozen=True)
class Cleaned:
    """A sweep without the echo that is no rain."""

    sweep: Sweep
    #: Bits of the steps that took a gate's echo out, or lowered it (bright band), (rays, gates).
    flags: NDArray[np.uint8]
    #: Number of gates that each step took out or lowered; ``"echo"`` is how many there were.
    counts: dict[str, int]
    #: dB that obstacles and rain took on the way, and that were added, (rays, gates).
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

    - ``sweep``: with reflectivity.
    - ``steps``: of `STEPS`.
    - ``rhohv``: correlation coefficient below which an echo is no rain. Gates where it was not
      measured stay: it is lost first in weak rain, where there is most rain to lose.
    - ``weakest``: dBZ from which on an echo counts as rain: weaker ones join no speckles.
    - ``climate``: for the step of that name, which also adds what obstacles take; rays behind those
      that take all become missing, so that a higher sweep can take their place.
    - ``attenuation``: band of a radar whose loss by rain is added after that.
    - ``freezing``: height of 0 degrees Celsius in metres: the excess of a bright band is taken off
      at the end, of a sweep of a known site.
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
        counts[step] = _take_out(mask, np.uint8(1 << place), np.float32(weakest), dbz, flags)
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
    """Return the gates that are false by one step; None where the sweep lacks a moment for it."""
    assert sweep.dbz is not None
    if step == "correlation":
        return None if sweep.rhohv is None else (sweep.rhohv < rhohv) & np.isfinite(sweep.dbz)
    if step == "texture":
        # By reflectivity alone strong showers in gates of 1 km are as rough as ground.
        polarimetric = sweep.rhohv is not None or sweep.phidp is not None
        return texture(sweep, weakest) if polarimetric else None
    if step == "spikes":
        return spikes(sweep.dbz, sweep.range)
    if step == "second_trip":
        return second_trip(sweep, weakest)
    return speckle(sweep.dbz >= weakest)


@jit
def _take_out(
    mask: Mask, bit: np.uint8, weakest: np.float32,
    dbz: NDArray[np.float32], flags: NDArray[np.uint8],
) -> int:  # fmt: skip
    """Set the bit and no echo at gates; return how many had an echo from ``weakest`` on."""
    count = 0
    for ray in range(dbz.shape[0]):
        for gate in range(dbz.shape[1]):
            if mask[ray, gate]:
                count += dbz[ray, gate] >= weakest
                flags[ray, gate] |= bit
                dbz[ray, gate] = -np.inf
    return count


@jit
def surround(dbz: NDArray[np.float32], flags: NDArray[np.uint8]) -> None:
    """Write the mean of the echo around gates with flags, in dBZ, where half of those is echo.

    Gates that have flags or are missing do not count; the first ray is beside the last.
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
