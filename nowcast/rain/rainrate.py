"""Rain rate from radar reflectivity by a power law Z = a R^b."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError


@dataclass(frozen=True)
class ZRRelation:
    """Z = a R^b, with Z in mm6 m-3 and R in mm h-1.

    Examples
    --------
    >>> relation = ZRRelation.named("marshall-palmer")
    >>> relation.rain_rate(np.array([23.0103, -np.inf, np.nan], np.float32)).round(3).tolist()
    [1.0, 0.0, nan]
    """

    #: Factor and exponent, both positive.
    a: float = 200.0
    b: float = 1.6
    #: Upper limit of reflectivity in dBZ: higher values are hail and count as this one; 53 dBZ is
    #: WSR-88D's default (Fulton et al., 1998, Weather and Forecasting 13).
    hail_cap: float | None = 53.0
    #: Reflectivity in dBZ below which there is no rain (0 mm h-1, not missing).
    noise: float | None = 7.0
    name: str = "marshall-palmer"  #: Name of the relation, for the attributes of files.

    def __post_init__(self) -> None:
        if not (0 < self.a < math.inf and 0 < self.b < math.inf):
            raise SettingsError(
                f"Z-R relation: expected positive a and b, found {self.a},{self.b}; use 200,1.6 "
                "where nothing better is known"
            )

    @classmethod
    def named(
        cls, choice: str, *, hail_cap: float | None = 53.0, noise: float | None = 7.0
    ) -> ZRRelation:
        """Return the relation named ``choice``, or the relation with numbers ``"a,b"``."""
        if choice in RELATIONS:
            a, b = RELATIONS[choice]
            return cls(a, b, hail_cap, noise, choice)
        numbers = re.fullmatch(r"\s*([\d.eE+-]+)\s*,\s*([\d.eE+-]+)\s*", choice)
        try:
            if numbers is None:
                raise ValueError
            return cls(float(numbers[1]), float(numbers[2]), hail_cap, noise, "custom")
        except ValueError:
            raise SettingsError(
                f"Z-R relation: expected one of {', '.join(RELATIONS)} or 'a,b' with positive "
                f"numbers, found {choice!r}; give one of them"
            ) from None

    def rain_rate(self, dbz: NDArray[Any]) -> NDArray[np.float32]:
        """Return the rain rate in mm h-1, float32, of dBZ; minus infinity gives 0, NaN stays."""
        # R = (10^(dBZ/10) / a)^(1/b) as one exponential, which takes -inf to 0 and NaN to NaN.
        slope = np.float32(math.log(10.0) / (10.0 * self.b))
        shift = np.float32(math.log(self.a) / self.b)
        cap = np.float32(math.inf if self.hail_cap is None else self.hail_cap)
        noise = np.float32(-math.inf if self.noise is None else self.noise)
        values = np.asarray(dbz, np.float32)
        rate = np.exp(np.minimum(values, cap) * slope - shift)
        return np.where(values < noise, np.float32(0), rate)

    def reflectivity(self, rain_rate: NDArray[Any]) -> NDArray[np.float64]:
        """Return the reflectivity in dBZ of a rain rate in mm h-1; minus infinity for 0."""
        with np.errstate(divide="ignore"):
            return 10.0 * (
                math.log10(self.a) + self.b * np.log10(np.asarray(rain_rate, np.float64))
            )

    def __str__(self) -> str:
        cap = "no hail cap" if self.hail_cap is None else f"hail cap {self.hail_cap:g} dBZ"
        noise = "no noise threshold" if self.noise is None else f"no rain below {self.noise:g} dBZ"
        return f"Z = {self.a:g} R^{self.b:g} ({self.name}), {cap}, {noise}"


# Marshall and Palmer (1948); WSR-88D's convective default (Fulton et al., 1998); the Finnish
# Meteorological Institute's for rain (Leinonen et al., 2012).
RELATIONS = {
    "marshall-palmer": (200.0, 1.6),
    "wsr88d": (300.0, 1.4),
    "fmi": (223.0, 1.53),
}
