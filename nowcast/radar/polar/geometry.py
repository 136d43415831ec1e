"""The geometry of a sweep: the places of its gates over the ground, and their heights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nowcast.radar.header import Site

# Between the half-power points of the beam, degrees: what most weather radars have.
BEAMWIDTH = 1.0


@dataclass(frozen=True)
class Geometry:
    """Places of the gates of a sweep."""

    site: Site  #: The radar.
    elevation: float  #: Degrees.
    azimuth: tuple[float, ...]  #: Middle of the rays in degrees, increasing.
    #: Middle of the first gate and spacing of the gates in metres along the beam.
    first: float
    step: float
    gates: int  #: Number of gates.

    @classmethod
    def of(
        cls, site: Site, elevation: float, azimuth: NDArray[np.float64], range_: NDArray[np.float64]
    ) -> Geometry:
        """Return the geometry, rounded (far away to metres) so repeated scans share weights."""
        return cls(
            site=site,
            elevation=round(float(elevation), 2),
            azimuth=tuple(np.round(azimuth, 3).tolist()),
            first=round(float(range_[0]), 1),
            step=round(float(range_[-1] - range_[0]) / max(len(range_) - 1, 1), 3),
            gates=len(range_),
        )

    @property
    def range(self) -> NDArray[np.float64]:
        """Middles of the gates along the beam, (gates,) metres."""
        return self.first + self.step * np.arange(self.gates, dtype=np.float64)

    def ground_range(self, range_: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distance along the ground under a point of the beam, metres.

        Standard refraction as straight rays over an earth of 4/3 its radius (Doviak and Zrnić,
        1993, equations 2.28b and c).
        """
        radius, angle = self._effective_radius(), np.radians(self.elevation)
        above = radius + self.height_along(range_)
        return radius * np.arcsin(range_ * np.cos(angle) / above)

    def height_along(self, range_: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the height above the antenna of a point of the beam, metres."""
        radius, angle = self._effective_radius(), np.radians(self.elevation)
        return np.sqrt(range_**2 + radius**2 + 2 * range_ * radius * np.sin(angle)) - radius

    def slant_range(self, ground: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the range along the beam over a distance along the ground; the inverse."""
        radius, angle = self._effective_radius(), np.radians(self.elevation)
        # Sine rule in the triangle of the earth's centre, the radar and the point.
        central = ground / radius
        return radius * np.sin(central) / np.cos(angle + central)

    def height(self, ground: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the height of the beam above the antenna over a distance along the ground."""
        radius, angle = self._effective_radius(), np.radians(self.elevation)
        return radius * (np.cos(angle) / np.cos(angle + ground / radius) - 1.0)

    def _effective_radius(self) -> float:
        a, b = 6_378_137.0, 6_356_752.314245
        c, s = np.cos(np.radians(self.site.latitude)), np.sin(np.radians(self.site.latitude))
        radius = np.sqrt(((a * a * c) ** 2 + (b * b * s) ** 2) / ((a * c) ** 2 + (b * s) ** 2))
        return float(radius + self.site.altitude) * 4.0 / 3.0
