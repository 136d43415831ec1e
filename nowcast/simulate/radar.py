"""A simulated radar: where its gates lie, and what it measures of the weather there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.simulate.weather import Weather

Array = NDArray[np.floating]

#: Radius of the earth with which a beam in the standard atmosphere is straight, in metres.
EFFECTIVE_RADIUS = 4 / 3 * 6_371_000.0


@dataclass(frozen=True)
class Radar:
    """A C-band radar at a place that does not exist, with the geometry of one that could.

    Parameters
    ----------
    latitude, longitude : float
    height : float
        Of the antenna above the sea, metres.
    rays, gates : int
    gate_length : float
        Metres.
    elevations : tuple of float
        Degrees.
    blocked : tuple of int
        Rays that see nothing, behind a mast.
    """

    latitude: float = 50.0
    longitude: float = 5.0
    height: float = 120.0
    rays: int = 360
    gates: int = 240
    gate_length: float = 500.0
    elevations: tuple[float, ...] = (0.5, 1.5)
    blocked: tuple[int, ...] = (131, 132)

    def gate_positions(self, elevation: float) -> tuple[Array, Array, Array, Array]:
        """Return x, y, height above the antenna and slant range of all gates, (rays, gates), m."""
        slant = (np.arange(self.gates) + 0.5) * self.gate_length
        angle = np.deg2rad(elevation)
        up = np.sqrt(slant**2 + EFFECTIVE_RADIUS**2 + 2 * slant * EFFECTIVE_RADIUS * np.sin(angle))
        ground = EFFECTIVE_RADIUS * np.arcsin(slant * np.cos(angle) / up)
        azimuth = np.deg2rad((np.arange(self.rays) + 0.5) * 360 / self.rays)[:, None]
        shape = (self.rays, self.gates)
        return (
            ground * np.sin(azimuth),
            ground * np.cos(azimuth),
            np.broadcast_to(up - EFFECTIVE_RADIUS, shape),
            np.broadcast_to(slant, shape),
        )

    def measure(
        self, weather: Weather, time: float, elevation: float, rng: np.random.Generator
    ) -> Array:
        """Return reflectivity in dBZ (rays, gates); -inf where nothing is heard, NaN where blind.

        Marshall-Palmer drops, averaged across a beam of one degree, fading by 4 dB/km above 2.5 km,
        with 1 dB of noise and a sensitivity of -6 dBZ at 100 km that falls with the range squared.
        """
        x, y, above, slant = self.gate_positions(elevation)
        z = 200 * weather.rain(time, x, y).astype(float) ** 1.6
        z = 0.25 * np.roll(z, 1, 0) + 0.5 * z + 0.25 * np.roll(z, -1, 0)
        with np.errstate(divide="ignore"):
            dbz = 10 * np.log10(z)
        dbz += rng.normal(0, 1, dbz.shape) - 4e-3 * np.maximum(above - 2500, 0)
        dbz[dbz < -6 + 20 * np.log10(slant / 100e3)] = -np.inf
        dbz[list(self.blocked)] = np.nan
        return dbz
