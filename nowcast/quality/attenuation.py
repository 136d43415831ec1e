"""Attenuation: the loss of echo behind rain, at C and X band.

The measured reflectivity Z gives the distribution of the loss along a ray (Hitschfeld and Bordan,
1954): 10^(-0.1 b L(r)) = 1 - c J(r), with the loss L in dB and J the integral of Z^b. If the
differential phase is measured, it gives the total loss at the end of the rain, and from it c
(Z-PHI; Testud et al., 2000, Journal of Atmospheric and Oceanic Technology 17). Otherwise c follows
from drop sizes. An error in the radar's calibration then makes L wrong or unbounded, so L is
capped.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nowcast.radar.polar.sweep import Sweep

Band = Literal["C", "X"]
# Largest correction, dB.
CAP = 10.0
# Least number of gates with rain for its phase at both ends, and number of gates in an end.
GATES, END = 30, 12


class Coefficients(NamedTuple):
    """Specific attenuation k = a Z^b (dB/km, one way), and dB lost per degree of phase."""

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

    The sweep has to be cleaned, because ground would count as rain.
    """
    assert sweep.dbz is not None
    a, b, phase = BANDS[band]
    step = float(np.median(np.diff(sweep.range))) / 1000.0 if sweep.range.size > 1 else 0.0
    rain = np.isfinite(sweep.dbz)
    power = np.where(rain, np.float32(10) ** (np.float32(0.1 * b) * sweep.dbz), np.float32(0))
    # A gate weakens its own echo half as much as the echoes behind it.
    integral = step * (np.cumsum(power, axis=1) - 0.5 * power)
    least = 10.0 ** (-0.1 * b * CAP)
    slope = np.full(len(power), 0.2 * np.log(10) * a * b)
    if sweep.phidp is not None:
        known = rain & np.isfinite(sweep.phidp)
        for ray in np.flatnonzero(known.sum(axis=1) >= GATES):
            gates = np.flatnonzero(known[ray])
            turned = max(_turned(sweep.phidp[ray, gates]), 0.0)
            # The loss from the middle of one end of the rain to the middle of the other.
            between = 10.0 ** (0.1 * b * min(phase * turned, CAP))
            first, last = integral[ray, gates[END // 2]], integral[ray, gates[-END // 2]]
            slope[ray] = (between - 1) / (between * last - first)
    rest = np.maximum(1 - slope[:, np.newaxis] * integral, least)
    return np.asarray(-10.0 / b * np.log10(rest), np.float32)


def _turned(phase: NDArray[np.float32]) -> float:
    """Return the rise in degrees of the phase of consecutive gates, from end to end."""
    # The phase folds at 360 degrees, rises in rain, and falls only by errors.
    start = np.degrees(np.angle(np.exp(1j * np.radians(phase[:END])).mean()))
    rise = (phase - start + 60.0) % 360.0
    return float(np.median(rise[-END:]) - np.median(rise[:END]))
