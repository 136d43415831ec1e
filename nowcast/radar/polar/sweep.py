"""One sweep of a radar: moments by ray and gate, with no echo and missing told apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.attributes import REFLECTIVITY
from nowcast.radar.header import Site
from nowcast.radar.polar.geometry import Geometry
from nowcast.radar.units import METRES

if TYPE_CHECKING:
    import xarray as xr

REFLECTIVITY_STANDARD = (
    "equivalent_reflectivity_factor",
    "radar_equivalent_reflectivity_factor_h",
    "radar_equivalent_reflectivity_factor",
)
CORRELATION = ("RHOHV", "URHOHV", "RHO_HV", "cross_correlation_ratio", "RH")
PHASE = ("PHIDP", "UPHIDP", "PHI_DP", "differential_phase", "PH")
COHERENCE = ("SQIH", "SQI", "SQIV", "sqih", "sqi", "sqiv", "NCP", "NCPH")  # small: GAMIC's
VELOCITY = ("VRADH", "VRAD", "VRADV", "velocity", "VEL", "VR")
CORRELATION_STANDARD = (
    "cross_correlation_ratio_hv",
    "cross_correlation_ratio",
    "radar_correlation_coefficient_hv",
)
PHASE_STANDARD = (
    "differential_phase_hv", "radar_differential_phase_hv", "differential_phase",
)  # fmt: skip

DECIBELS = re.compile(r"db|decibel|10 ?\*? ?log", re.IGNORECASE)
# Far beyond what radars have: a file with more is damaged.
MOST_RAYS = 10_000
MOST_GATES = 1 << 25
FARTHEST = 1_000_000.0
#: Metres that any radar sees at least.
NEAREST = 1_000.0

#: Fields of a sweep that have a value for each gate, or none.
MOMENTS = ("dbz", "rhohv", "phidp", "coherence", "velocity")

# Which gates of a moment have no echo (dry) and which are missing: two masks like the array.
Classify = Callable[["xr.DataArray"], tuple[NDArray[np.bool_], NDArray[np.bool_]]]


@dataclass(frozen=True)
class Sweep:
    """A full or partial turn of the antenna at one elevation."""

    elevation: float  #: Degrees above the horizon.
    #: Middle of each ray in degrees clockwise from north, increasing, (n,).
    azimuth: NDArray[np.float64]
    #: Middle of each gate in metres along the beam, equally spaced, (m,).
    range: NDArray[np.float64]
    time: np.datetime64  #: Start of the sweep, UTC.
    site: Site | None  #: Where the radar stands; None when the file does not know.
    #: (n, m): reflectivity in dBZ; minus infinity where there is no echo, NaN where it is missing
    #: (outside of the range, range-folded, not scanned). None when the file has no reflectivity.
    dbz: NDArray[np.float32] | None
    #: (n, m): co-polar correlation coefficient; NaN where it was not measured.
    rhohv: NDArray[np.float32] | None
    #: (n, m): differential phase in degrees; NaN where it was not measured.
    phidp: NDArray[np.float32] | None = None
    #: (n, m): signal quality index (normalised coherent power), 0 to 1; NaN where it was not
    #: measured.
    coherence: NDArray[np.float32] | None = None
    #: (n, m): radial velocity over the unambiguous one, -1 to 1; NaN where it was not measured.
    #: Readers give it where there is no coherence.
    velocity: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        """Refuse impossible sweeps, so that a damaged file does not become a map."""
        shape = (self.azimuth.size, self.range.size)
        steps = np.diff(self.range)
        checks = {
            "an elevation from -10 to 90 degrees": (-10 <= self.elevation <= 90, self.elevation),
            "a time": (not np.isnat(self.time), self.time),
            f"1 to {MOST_RAYS} rays": (0 < shape[0] <= MOST_RAYS, shape[0]),
            f"1 to {MOST_GATES} gates": (shape[1] > 0 and shape[0] * shape[1] <= MOST_GATES, shape),
            "azimuths from 0 to 360 degrees": (
                bool(np.all((self.azimuth >= 0) & (self.azimuth <= 360))),
                self.azimuth[:4],
            ),
            f"gates in equal steps up to {FARTHEST / 1000:g} km": (
                bool(np.all((steps > 0) & (np.abs(self.range[:-1]) < FARTHEST)))
                and self.range[-1] <= FARTHEST
                and (steps.size == 0 or np.ptp(steps) <= 0.02 * steps.mean() + 1.0),
                self.range[:4],
            ),
            f"gates up to {NEAREST / 1000:g} km or farther, not kilometres said to be metres,": (
                self.reach >= NEAREST,
                self.range[-4:],
            ),
        }
        for expected, (fulfilled, actual) in checks.items():
            if not fulfilled:
                raise DataError(f"expected {expected} in a sweep, found {actual}")
        for name in MOMENTS:
            moment = getattr(self, name)
            if moment is not None and moment.shape != shape:
                raise DataError(f"expected {shape} rays and gates, found {moment.shape} values")

    @property
    def reach(self) -> float:
        """Range of the last gate in metres."""
        return float(self.range[-1])

    @property
    def geometry(self) -> Geometry:
        """Places of the gates; the sweep's site must be known."""
        assert self.site is not None
        return Geometry.of(self.site, self.elevation, self.azimuth, self.range)

    def same_turn(self, other: Sweep) -> bool:
        """Return whether both are moments of the same turn: same rays, gates and minute."""
        return (
            abs(self.elevation - other.elevation) < 0.05
            and self.azimuth.shape == other.azimuth.shape
            and self.range.shape == other.range.shape
            and bool(np.allclose(self.azimuth, other.azimuth, atol=0.1))
            and bool(np.allclose(self.range, other.range, atol=1.0))
            and bool(abs(self.time - other.time) < np.timedelta64(30, "s"))
        )

    def joined(self, other: Sweep) -> Sweep:
        """Return this sweep with missing moments taken from another file of the same turn."""
        lacked = [name for name in (*MOMENTS, "site") if getattr(self, name) is None]
        return replace(self, **{name: getattr(other, name) for name in lacked})


def from_xradar(
    dataset: xr.Dataset, site: Site | None, classify: Classify, moment: str | None = None
) -> Sweep:
    """Return a sweep from xradar's Dataset of it (azimuth, range), rays sorted by azimuth.

    ``site`` is from the root of the file. ``classify`` is the format's function that separates no
    echo and missing. ``moment`` names the reflectivity, by default the first of
    :data:`REFLECTIVITY`.
    """
    azimuth = np.asarray(dataset["azimuth"].values, np.float64)
    # The middle of a ray across north is 360 degrees or more in some.
    azimuth = np.where(azimuth >= 360.0, azimuth - 360.0, azimuth)
    order = np.argsort(azimuth, kind="stable")
    reflectivity = (
        find(dataset, (moment,)) if moment else find(dataset, REFLECTIVITY, REFLECTIVITY_STANDARD)
    )
    dbz = None
    if reflectivity is not None:
        check_decibels(reflectivity)
        values = reflectivity.values.astype(np.float32)
        dry, missing = classify(reflectivity)
        values[dry] = -np.inf
        values[missing] = np.nan
        dbz = values[order]
    rhohv = _measured(find(dataset, CORRELATION, CORRELATION_STANDARD), classify, order)
    phidp = _measured(find(dataset, PHASE, PHASE_STANDARD), classify, order)
    coherence = _measured(find(dataset, COHERENCE), classify, order)
    velocity = None
    if coherence is None:
        velocity = of_nyquist(_measured(find(dataset, VELOCITY), classify, order))
    times = dataset["time"].values
    return Sweep(
        elevation=elevation_of(dataset),
        azimuth=azimuth[order],
        range=_metres(dataset["range"]),
        time=times[~np.isnat(times)].min().astype("datetime64[ms]"),
        site=site,
        dbz=dbz,
        rhohv=rhohv,
        phidp=phidp,
        coherence=coherence,
        velocity=velocity,
    )


def of_nyquist(
    velocity: NDArray[np.float32] | None, nyquist: float | None = None
) -> NDArray[np.float32] | None:
    """Return a velocity over the unambiguous one, by default the sweep's largest."""
    if velocity is None:
        return None
    largest = nyquist or np.nanmax(np.abs(velocity), initial=0.0)
    return velocity / np.float32(largest) if largest > 0 else None


def check_decibels(reflectivity: xr.DataArray) -> None:
    """Refuse reflectivity in units other than dBZ, such as mm6 m-3; no unit means dBZ."""
    units = str(reflectivity.attrs.get("units", "")).strip()
    if units and not DECIBELS.match(units):
        raise DataError(
            f"expected {reflectivity.name} in dBZ, found {units!r}; convert the numbers and their "
            "units"
        )


def _metres(ranges: xr.DataArray) -> NDArray[np.float64]:
    units = str(ranges.attrs.get("units", "m")).strip().lower()
    if units not in METRES:
        raise DataError(
            f"expected the range in m or km, found {units!r}; convert the numbers and their units"
        )
    return np.asarray(ranges.values, np.float64) * METRES[units]


def _measured(
    moment: xr.DataArray | None, classify: Classify, order: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """Return a moment with NaN where there is no echo, with its rays in ``order``."""
    if moment is None:
        return None
    values = moment.values.astype(np.float32)
    dry, missing = classify(moment)
    values[dry | missing] = np.nan
    return values[order]


def find(
    dataset: xr.Dataset, names: tuple[str, ...], standard_names: tuple[str, ...] = ()
) -> xr.DataArray | None:
    """Return a sweep's first of the named moments, rays first; None without one.

    Moments under other names are found by their CF standard name.
    """
    moments = {
        str(name): moment
        for name, moment in dataset.data_vars.items()
        if {"azimuth", "range"} == set(moment.dims) and moment.dtype.kind in "iuf"
    }
    for name in names:
        if name in moments:
            return moments[name].transpose("azimuth", "range")
    for standard_name in standard_names:
        for moment in moments.values():
            if moment.attrs.get("standard_name") == standard_name:
                return moment.transpose("azimuth", "range")
    return None


def elevation_of(dataset: xr.Dataset) -> float:
    """Return the elevation of a sweep in degrees: the rays' median, or the set one.

    Some antennas turn a tenth of a degree off the set angle.
    """
    angle = float(np.nanmedian(dataset["elevation"].values))
    if not np.isfinite(angle) and "sweep_fixed_angle" in dataset.variables:
        angle = float(dataset["sweep_fixed_angle"].values)
    return angle


def site_of(dataset: xr.Dataset) -> Site | None:
    """Return the radar's site from the coordinates of xradar's root or sweep Dataset."""
    values = [
        float(np.asarray(dataset[name].values).reshape(-1)[0]) if name in dataset.variables else 0.0
        for name in ("latitude", "longitude", "altitude")
    ]
    return Site.known(*values)
