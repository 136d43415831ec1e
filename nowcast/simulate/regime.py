"""Regimes of simulated weather: storms, and systems with stratiform rain around them.

The life cycle of mesoscale systems after C. Leary and R. Houze (J. Atmos. Sci. 36, 1979, 669):
in the formative stage there are cores alone, in the mature one stratiform rain grows around and
behind them, in the dissipating one it remains without cores. Larger systems live longer. So the
next stage follows from the present one, which no extrapolation of rain or its trend can predict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nowcast.simulate.storms import Cells, Storms, cores_in, draw_numbers, lognormal


@dataclass(frozen=True)
class Regime:
    """Factors of a kind of weather, relative to the defaults of `Weather`."""

    name: str
    tempo: float  #: How much faster storms are born, move and die.
    size: float  #: How much larger everything is, distances that storms move included.
    strength: float  #: Factor of rain rates.
    storms: float  #: Number of storms in 24 hours of the weather's own time, see `Weather`.


#: Kinds of weather that days are drawn from.
REGIMES = (
    Regime("fronts", 0.6, 1.5, 0.5, 40.0),
    Regime("mixed", 1.0, 1.0, 1.0, 56.0),
    Regime("showers", 1.4, 0.8, 1.1, 75.0),
    Regime("squalls", 1.2, 1.2, 1.5, 40.0),
)


def draw_regime(rng: np.random.Generator) -> Regime:
    """Draw a kind of weather; its tempo, size and strength vary by about a fifth."""
    regime = REGIMES[int(rng.integers(len(REGIMES)))]
    tempo, size, strength = np.exp(rng.normal(0.0, 0.2, 3))
    return Regime(
        regime.name,
        regime.tempo * float(tempo),
        regime.size * float(size),
        regime.strength * float(strength),
        regime.storms,
    )


#: Farthest from the radar that the middle of a system is when it is half through its life, metres.
REACH = 160e3
#: Radii of the stratiform rain in metres, and lives of systems in seconds, smallest and largest.
RADIUS, LIFE = (16e3, 42e3), (110 * 60.0, 200 * 60.0)
#: Part of a system's life before stratiform rain begins, and after which no core is born.
STRATIFORM, LAST_CORE = 0.2, 0.35
#: Cores of the smallest and of the largest system.
CORES = (4, 12)
#: Standard deviation of the logarithm of rain within stratiform rain, which is smooth.
ROUGH = 0.5


def draw_systems(seed: int, hours: float, per_day: float) -> Storms:
    """Draw organised storms (systems); for the arguments see `Storms.draw`."""
    start, interval, one, many = draw_numbers(seed, hours, per_day)
    size = one[4]
    life = LIFE[0] + (LIFE[1] - LIFE[0]) * size + 600.0 * (2 * one[1] - 1)
    middle = start + interval * one[0]
    begin = middle - 0.5 * life
    distance, direction = REACH * np.sqrt(one[2]), 2.0 * np.pi * one[3]
    along = RADIUS[0] + (RADIUS[1] - RADIUS[0]) * size
    shields = Cells(
        birth=begin + STRATIFORM * life,
        life=(1 - STRATIFORM) * life,
        when=middle,
        x=distance * np.cos(direction),
        y=distance * np.sin(direction),
        peak=lognormal(one[5], 3.5, 0.3),
        along=along,
        across=along * (0.5 + 0.4 * one[6]),
        tilt=np.pi * one[7],
    )
    number = np.round(CORES[0] + (CORES[1] - CORES[0]) * size)
    system, core = np.nonzero(np.arange(many.shape[1]) < number[:, None])
    u = many[system, core].T
    cores = cores_in(
        shields[system],
        u,
        birth=begin[system] + LAST_CORE * life[system] * u[1],
        life=(30.0 + 30.0 * u[0]) * 60.0,
        radius=2.5e3 + 2.5e3 * u[4],
        spread=0.5,
    )
    return Storms(shields, cores)
