"""Site: the place of a radar."""

from __future__ import annotations

import math
from dataclasses import dataclass

from daskdl.errors import SettingsError


@dataclass(frozen=True)
class Site:
    """Latitude and longitude in degrees (WGS 84) and altitude of the antenna in metres."""

    latitude: float
    longitude: float
    altitude: float = 0.0

    def __post_init__(self) -> None:
        if not (abs(self.latitude) <= 90 and abs(self.longitude) <= 360):
            raise SettingsError(
                f"site: expected degrees, found {self.latitude},{self.longitude}"
                "; give latitude, then longitude"
            )

    @classmethod
    def parse(cls, text: str) -> Site:
        """Return the site that ``"LAT,LON"`` or ``"LAT,LON,ALT"`` gives."""
        try:
            numbers = [float(part) for part in text.split(",")]
            if len(numbers) not in (2, 3):
                raise ValueError
            return cls(*numbers)
        except ValueError as error:
            if isinstance(error, SettingsError):
                raise
            raise SettingsError(
                f"site: expected LAT,LON or LAT,LON,ALT in degrees and metres, found {text!r}"
                "; write such as 51.5,4.25,33"
            ) from None

    @classmethod
    def known(cls, latitude: float, longitude: float, altitude: float) -> Site | None:
        """Return a site, or None for what files hold that do not know theirs: 0, 0 or NaN."""
        if not (math.isfinite(latitude) and math.isfinite(longitude)):
            return None
        if abs(latitude) < 1e-6 and abs(longitude) < 1e-6:
            return None
        return cls(latitude, longitude, altitude if math.isfinite(altitude) else 0.0)

    def near(self, other: Site) -> bool:
        """Tell whether another site is within about a kilometre."""
        return math.dist((self.latitude, self.longitude), (other.latitude, other.longitude)) < 0.01

    def __str__(self) -> str:
        return f"{self.latitude:.5f},{self.longitude:.5f},{self.altitude:.0f}"
