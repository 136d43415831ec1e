"""A simulated radar: the path of its beam, and its measurements of the weather."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from nowcast.simulate.weather import Weather

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Radius of the earth, metres, with which a beam in the standard atmosphere is straight (Doviak and
# Zrnić, 1993, section 2.2.3). The ingest has its own geometry; that one is checked against this.
EFFECTIVE_RADIUS = 4 / 3 * 6_371_000.0
# Size of a cell of the map under the beam, metres.
CELL = 1000.0
# Drops of Marshall and Palmer (1948): Z = A R^B.
A, B = 200.0, 1.6
# Reflectivity falls with height, dB/km, below the freezing level and in the ice above it, metres.
FREEZING, IN_RAIN, IN_ICE = 2500.0, 0.4, 3.5
# Metres below the freezing level of the middle of the bright band, and to each of its ends.
MELTING = 300.0
# Independent samples in a gate: a measured power is uncertain by 1/sqrt(SAMPLES), 0.75 dB.
SAMPLES = 32
# Least ratio of echo to the noise's power for detection, more than 3 standard deviations.
DETECTION = 0.6


@dataclass(frozen=True)
class Radar:
    """A C-band radar at an invented place, with a realistic geometry."""

    latitude: float = 50.0  #: Degrees.
    longitude: float = 5.0
    height: float = 120.0  #: Height of the antenna above the sea, metres.
    rays: int = 360  #: Number of rays in a sweep.
    gates: int = 240
    gate_length: float = 500.0  #: Metres.
    elevations: tuple[float, ...] = (0.5, 1.5)  #: Degrees, lowest first.
    beamwidth: float = 1.0  #: Between the half-power points, degrees.
    turn: float = 20.0  #: Seconds that one turn of the antenna takes.
    #: Reflectivity at 1 km whose echo is as strong as the receiver's noise, dBZ.
    noise_at_1km: float = -43.0
    blocked: tuple[int, ...] = (131, 132)  #: Rays that see nothing, behind a mast.
    gap: float = 0.05  #: Probability that a sweep lacks up to three more rays.
    north: float = 0.0  #: Metres from the weather's origin, on its meridian.
    late: float = 0.0  #: Seconds after the full step at which a volume begins.
    bias: float = 0.0  #: Error of the calibration, dB.
    #: Excess of melting snow, 300 m below the freezing level at 2500 m, dB; 0 for none.
    bright_band: float = 0.0

    def __post_init__(self) -> None:
        if self.rays < 1 or self.gates < 1:
            raise SettingsError(
                f"Radar: expected at least one ray and one gate, found {self.rays} rays of "
                f"{self.gates} gates"
            )
        outside = [ray for ray in self.blocked if not 0 <= ray < self.rays]
        if outside:
            raise SettingsError(
                f"Radar, blocked: expected rays from 0 to {self.rays - 1}, found {outside}; name "
                "others, or none by blocked=()"
            )

    @property
    def azimuth(self) -> NDArray[np.float64]:
        """Middles of the rays, (rays,) degrees clockwise from north."""
        return np.asarray((np.arange(self.rays) + 0.5) * (360.0 / self.rays))

    @property
    def range(self) -> NDArray[np.float64]:
        """Middles of the gates along the beam, (gates,) metres."""
        return np.asarray((np.arange(self.gates) + 0.5) * self.gate_length)

    @property
    def noise(self) -> NDArray[np.float64]:
        """Reflectivity that noise looks like, (gates,) mm6 m-3: it grows with the range squared."""
        return 10.0 ** (0.1 * self.noise_at_1km) * np.square(self.range / 1000.0)

    def beam(self, elevation: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gates' distance along the ground and height above the sea, (gates,) metres."""
        angle = np.deg2rad(elevation)
        base = EFFECTIVE_RADIUS + self.height
        up = np.sqrt(self.range**2 + base**2 + 2.0 * self.range * base * np.sin(angle))
        return (
            EFFECTIVE_RADIUS * np.arcsin(self.range * np.cos(angle) / up),
            up - EFFECTIVE_RADIUS,
        )

    def axis(self) -> NDArray[np.float64]:
        """Return the coordinates of the map around the radar for :meth:`measure`."""
        cells = int(np.ceil(self.gates * self.gate_length / CELL)) + 3
        return np.arange(-cells, cells + 1, dtype=np.float64) * CELL

    def measure(
        self, weather: Weather, time: float, elevation: float, rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Return the sweep that begins at ``time``, (rays, gates) float32, of still weather.

        Reflectivities (not dBZ) are averaged across the beam, which widens with range, decrease
        with height and are received within noise. The sweep is in dBZ: minus infinity without an
        echo, NaN where the radar was blind.
        """
        return self.hear(self.echo(weather, time, elevation), rng)

    def echo(self, weather: Weather, time: float, elevation: float) -> NDArray[np.float32]:
        """Return the echo of the rain, (rays, gates) mm6 m-3, before the receiver."""
        axis = self.axis()
        north = axis[:, None] + self.north
        rain = weather.rain_field(time + 0.5 * self.turn, axis[None, :], north)
        reflectivity = np.float32(A) * rain ** np.float32(B)
        echo = (_footprint(self, elevation) @ reflectivity.reshape(-1)).reshape(
            self.rays, self.gates
        )
        return np.asarray(echo * profile(self, elevation), np.float32)

    def hear(self, echo: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
        """Return a sweep in dBZ of echoes (rays, gates) in mm6 m-3, as `measure` does."""
        noise = self.noise.astype(np.float32)
        fluctuation = rng.standard_normal(echo.shape, np.float32) / np.float32(np.sqrt(SAMPLES))
        heard = (echo + noise) * (1 + fluctuation) - noise
        with np.errstate(divide="ignore", invalid="ignore"):
            dbz = np.where(heard > DETECTION * noise, 10 * np.log10(heard), np.float32(-np.inf))
        dbz += np.float32(self.bias)
        dbz[list(self.blocked)] = np.nan
        if rng.random() < self.gap:
            first = rng.integers(self.rays)
            dbz[(first + np.arange(rng.integers(1, 4))) % self.rays] = np.nan
        return dbz.astype(np.float32, copy=False)


def _spread(width: float, points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights (adding up to 1) of a Gaussian of standard deviation ``width``."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    return width * nodes, weights / weights.sum()


def _two_way(beamwidth: float) -> float:
    """Return the standard deviation of the two-way power pattern of a Gaussian beam, degrees."""
    return beamwidth / np.sqrt(16.0 * np.log(2.0))


@lru_cache(maxsize=8)
def profile(radar: Radar, elevation: float) -> NDArray[np.float32]:
    """Return the fraction of reflectivity left at the gates' height, averaged over the beam."""
    offsets, weights = _spread(_two_way(radar.beamwidth), 5)
    profile = np.zeros(radar.gates)
    for offset, weight in zip(offsets, weights, strict=True):
        height = np.maximum(radar.beam(elevation + offset)[1], 0.0)
        loss = IN_RAIN * np.minimum(height, FREEZING) + IN_ICE * np.maximum(height - FREEZING, 0.0)
        melting = np.maximum(1 - np.abs(height - FREEZING + MELTING) / MELTING, 0)
        profile += weight * 10.0 ** (0.1 * radar.bright_band * melting - 1e-4 * loss)
    return profile.astype(np.float32)


@lru_cache(maxsize=8)
def _footprint(radar: Radar, elevation: float) -> csr_array:
    """Return weights that average the map over the beam's width, (rays * gates, cells) float32."""
    from scipy.sparse import csr_array

    # The beam's own width, and the turn of the antenna while it takes the samples of a ray.
    width = np.hypot(_two_way(radar.beamwidth), 360.0 / radar.rays / np.sqrt(12.0))
    ground = radar.beam(elevation)[0]
    axis = radar.axis()
    gate = np.arange(radar.rays * radar.gates).reshape(radar.rays, radar.gates)
    rows, columns, values = [], [], []
    for offset, share in zip(*_spread(width, 3), strict=True):
        angle = np.deg2rad(radar.azimuth + offset)[:, None]
        places = (
            (ground * np.cos(angle) - axis[0]) / CELL,
            (ground * np.sin(angle) - axis[0]) / CELL,
        )
        (row, up), (column, right) = ((np.floor(p).astype(int), p - np.floor(p)) for p in places)
        for north, part in ((0, 1 - up), (1, up)):
            for east, piece in ((0, 1 - right), (1, right)):
                rows.append(gate.reshape(-1))
                columns.append(((row + north) * axis.size + column + east).reshape(-1))
                values.append((share * part * piece).reshape(-1))
    return csr_array(
        (
            np.concatenate(values).astype(np.float32),
            (np.concatenate(rows), np.concatenate(columns)),
        ),
        shape=(gate.size, axis.size**2),
    )
