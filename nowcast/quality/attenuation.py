"""Attenuation: the echo that rain takes from what is behind it, at C and X band.

The measured reflectivity Z of a ray tells how the loss is spread along it, by Hitschfeld and Bordan
(1954): 10^(-0.1 b L(r)) = 1 - c J(r), with the loss L in dB and J the integral of Z^b. The
differential phase, where it is measured, tells how much the loss is at the end of the rain, and
with it c (Z-PHI; Testud et al., 2000, Journal of Atmospheric and Oceanic Technology 17). Without,
c follows from the drops, is wrong by the radar's calibration and grows without limit: so L is
capped.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nowcast.radar.polar.sweep import Sweep

Band = Literal["C", "X"]
# Most that is added, dB.
CAP = 10.0
# Gates with rain from which on the phase at both ends of it is known, and how many are an end.
GATES, END = 30, 12


class Coefficients(NamedTuple):
    """Specific attenuation k = a Z^b (dB/km, one way), and dB lost for a degree of phase."""

    a: float
    b: float
    phase: float


#: Krämer and Verworn (2008) and Bringi et al. (1990); Delrieu et al. (2000) and Park et al. (2005).
BANDS: dict[Band, Coefficients] = {
    "C": Coefficients(1.67e-4, 0.7, 0.08),
    "X": Coefficients(1.37e-4, 0.779, 0.28),
}


def loss(sweep: Sweep, band: Band) -> NDArray[np.float32]:
    """Return the dB to add for the attenuation by rain, (rays, gates) float32.

    The sweep is cleaned: ground would be taken for rain.
    """
    assert sweep.dbz is not None
    a, b, phase = BANDS[band]
    step = float(np.median(np.diff(sweep.range))) / 1000.0 if sweep.range.size > 1 else 0.0
    rain = np.isfinite(sweep.dbz)
    power = np.where(rain, np.float32(10) ** (np.float32(0.1 * b) * sweep.dbz), np.float32(0))
    # What a gate takes of its own echo is half of what it takes of those behind it.
    integral = step * (np.cumsum(power, axis=1) - 0.5 * power)
    least = 10.0 ** (-0.1 * b * CAP)
    slope = np.full(len(power), 0.2 * np.log(10) * a * b)
    if sweep.phidp is not None:
        known = rain & np.isfinite(sweep.phidp)
        for ray in np.flatnonzero(known.sum(axis=1) >= GATES):
            gates = np.flatnonzero(known[ray])
            turned = max(_turned(sweep.phidp[ray, gates]), 0.0)
            # The loss from the middle of one end of the rain to that of the other.
            between = 10.0 ** (0.1 * b * min(phase * turned, CAP))
            first, last = integral[ray, gates[END // 2]], integral[ray, gates[-END // 2]]
            slope[ray] = (between - 1) / (between * last - first)
    rest = np.maximum(1 - slope[:, np.newaxis] * integral, least)
    return np.asarray(-10.0 / b * np.log10(rest), np.float32)


def _turned(phase: NDArray[np.float32]) -> float:
    """Return the degrees by which the phase of gates in a row rises from end to end."""
    # It folds at 360 degrees, rises in rain, and falls by errors alone.
    start = np.degrees(np.angle(np.exp(1j * np.radians(phase[:END])).mean()))
    rise = (phase - start + 60.0) % 360.0
    return float(np.median(rise[-END:]) - np.median(rise[:END]))
