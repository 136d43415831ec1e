"""Regimes of simulated weather: how fast storms move and live, how large and strong they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Regime:
    """Factors of a kind of weather, relative to what `Weather` makes by itself.

    Parameters
    ----------
    name : str
    tempo : float
        How much faster storms are born, move and die.
    size : float
        How much larger everything is, distances that storms move included.
    strength : float
        Of rain rates.
    storms : float
        In 24 hours of the weather's own time, see `Weather`.
    """

    name: str
    tempo: float
    size: float
    strength: float
    storms: float


#: Kinds of weather that days are drawn from.
REGIMES = (
    Regime("fronts", 0.6, 1.5, 0.5, 40.0),
    Regime("mixed", 1.0, 1.0, 1.0, 56.0),
    Regime("showers", 1.4, 0.8, 1.1, 75.0),
    Regime("squalls", 1.2, 1.2, 1.5, 40.0),
)


def draw_regime(rng: np.random.Generator) -> Regime:
    """Draw a kind of weather, each of its factors by a fifth more or less."""
    regime = REGIMES[int(rng.integers(len(REGIMES)))]
    tempo, size, strength = np.exp(rng.normal(0.0, 0.2, 3))
    return Regime(
        regime.name,
        regime.tempo * float(tempo),
        regime.size * float(size),
        regime.strength * float(strength),
        regime.storms,
    )
