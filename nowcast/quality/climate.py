"""The climate of a radar's echoes: ground and obstacles learnt from an archive of its sweeps.

Ground echoes in most scans, rain only in some; rays behind an obstacle see less of the same rain
than the rays next to them. Days of scans are needed, some with rain, but no terrain model; if one
is given, its blockage is combined with the learnt one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from daskdl.files import replacing
from nowcast.quality.terrain import terrain_loss
from nowcast.radar.header import Site
from nowcast.radar.polar.geometry import Geometry
from nowcast.radar.polar.sweep import Sweep
from nowcast.rain.cf import describe
from nowcast.rain.store import expecting

# Ground: least fraction of scans with echo, also as a multiple of the median ray's at its range.
STATIC, UNUSUAL = 0.5, 3.0
# Least number of scans for a climate.
FEWEST = 100
# Metres beyond which obstacles are sought, and rays to each side for the comparison.
FROM, NEIGHBOURS = 20_000.0, 12
# Reflectivities (dBZ) whose frequencies are compared between rays, and those that are counted.
COMPARED = np.arange(10.0, 31.0, 5.0)
COUNTED = np.arange(5.0, 46.0)
# dB below which a loss counts as none, and above which a ray sees nothing.
LEAST, MOST = 1.5, 10.0
# dB by which the lower limit rises for a single scan; it falls with the root of their number.
DOUBT = 9.0
# Number of bands of range for the frequencies.
BANDS = 48


@dataclass(frozen=True)
class Climate:
    """Ground and obstacles around a radar at one elevation."""

    elevation: float  #: Degrees.
    range: NDArray[np.float64]  #: Metres, (gates,).
    #: (rays, gates): fraction of scans with echo; rays are equal parts of the turn, from north.
    frequency: NDArray[np.float32]
    blockage: NDArray[np.float32]  #: Loss in dB behind obstacles, (rays, gates).
    scans: int  #: Number of scans that it was learnt from.
    site: Site | None = None  #: Site of the radar.

    @property
    def ground(self) -> NDArray[np.bool_]:
        """Gates with ground, (rays, gates)."""
        usual = np.median(self.frequency, axis=0)
        return np.asarray(self.frequency >= np.maximum(STATIC, UNUSUAL * usual))

    def of(self, sweep: Sweep) -> tuple[NDArray[np.bool_], NDArray[np.float32]] | None:
        """Return ground (rays, gates) and loss in dB, (rays, gates), at a sweep's rays.

        None for a sweep with another radar, elevation or other gates.
        """
        if not alike(sweep, self):
            return None
        ray = _rays(sweep, len(self.frequency))
        return self.ground[ray], self.blockage[ray]


@dataclass
class Tally:
    """Counts of echo over sweeps of a radar."""

    elevation: float = 0.0
    range: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    scans: int = 0
    others: int = 0
    site: Site | None = None

    def add(self, sweep: Sweep, weakest: float = 7.0) -> None:
        """Count a sweep; skip it if its elevation or gates differ from the first sweep's."""
        assert sweep.dbz is not None
        if not self.scans:
            rays = round(360.0 / float(np.median(np.diff(sweep.azimuth))))
            self.elevation, self.range, self.site = sweep.elevation, sweep.range, sweep.site
            self.seen = np.zeros((rays, sweep.range.size), np.int32)
            self.echo = np.zeros_like(self.seen)
            self.strong = np.zeros((rays, BANDS, COUNTED.size), np.int32)
        if not alike(sweep, self):
            self.others += 1
            return
        self.scans += 1
        ray = _rays(sweep, len(self.seen))
        np.add.at(self.seen, ray, ~np.isnan(sweep.dbz))
        np.add.at(self.echo, ray, sweep.dbz >= weakest)
        row, gate = np.nonzero(sweep.dbz >= COUNTED[0])
        step = np.minimum(sweep.dbz[row, gate] - COUNTED[0], COUNTED.size - 1).astype(np.int64)
        place = (ray[row] * BANDS + gate * BANDS // sweep.range.size) * COUNTED.size + step
        self.strong += np.bincount(place, minlength=self.strong.size).reshape(self.strong.shape)

    def climate(self, terrain: Path | None = None) -> Climate:
        """Return the climate of the sweeps.

        The blockage of a terrain model is combined with the learnt one; with few scans it is used
        alone. Raises DataError for too few scans, or a terrain model of another place.
        """
        shape, learnt = self.seen.shape, self.scans >= FEWEST
        if not learnt and terrain is None:
            raise DataError(
                f"climate: expected {FEWEST} scans of one elevation at least, found {self.scans}, "
                f"and {self.others} of others; give days of scans, or a terrain model"
            )
        frequency = (self.echo / np.maximum(self.seen, 1) * learnt).astype(np.float32)
        blockage = np.zeros(shape, np.float32)
        climate = Climate(self.elevation, self.range, frequency, blockage, self.scans, self.site)
        if learnt:
            loss = self._blockage(climate.ground)[:, np.newaxis]
            blockage = loss * (self.range >= FROM).astype(np.float32)
        if terrain is not None:
            if self.site is None:
                raise DataError(
                    f"{terrain}: expected scans that say where the radar stands, found none; a "
                    "terrain model needs its place"
                )
            azimuth = (np.arange(len(frequency)) + 0.5) * 360.0 / len(frequency)
            gates = Geometry.of(self.site, self.elevation, azimuth, self.range)
            blockage = np.maximum(blockage, terrain_loss(terrain, gates))
        return replace(climate, blockage=blockage)

    def _blockage(self, ground: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the loss in dB of each ray against the rays next to it in the same rain."""
        band = np.arange(self.range.size) * BANDS // self.range.size
        near = self.range < FROM
        clear = np.ones(self.strong.shape[:2], bool)
        np.logical_and.at(clear.T, band, ~(ground | near).T)
        # Numbers of gates of at least each reflectivity; bands with ground do not count.
        counts = np.where(clear[..., np.newaxis], self.strong, 0)[..., ::-1].cumsum(axis=2)
        counts = counts[..., ::-1].sum(axis=1) / np.maximum(clear.sum(axis=1), 1)[:, np.newaxis]
        neighbours = [np.roll(counts, side, axis=0) for side in range(-NEIGHBOURS, NEIGHBOURS + 1)]
        usual = np.median(neighbours, axis=0)
        loss = np.zeros(len(counts))
        for ray, (counted, others) in enumerate(zip(counts, usual, strict=True)):
            at = np.interp(COMPARED, COUNTED, counted)
            # Frequencies fall with reflectivity; np.interp needs rising ones.
            as_usual = np.interp(at, others[::-1], COUNTED[::-1])
            loss[ray] = np.median(as_usual - COMPARED)
        loss = np.median([np.roll(loss, side) for side in (-1, 0, 1)], axis=0)
        # A few scans have few showers, so rays differ by chance.
        least = LEAST + DOUBT / np.sqrt(self.scans)
        return np.where((loss < least) | ~self.seen.any(axis=1), 0, loss).astype(np.float32)


def write_climate(climate: Climate, path: Path) -> None:
    """Write a climate as netCDF; the file is complete or absent."""
    import xarray as xr

    rays = len(climate.frequency)
    azimuth = (np.arange(rays) + 0.5) * 360.0 / rays
    share = {"long_name": "share of the scans with echo", "units": "1"}
    loss = {"long_name": "loss behind obstacles, there and back", "units": "dB"}
    dataset = xr.Dataset(
        {"echo_frequency": (("azimuth", "range"), climate.frequency, share),
         "blockage": (("azimuth", "range"), climate.blockage, loss)},
        {"azimuth": ("azimuth", azimuth, {"units": "degrees", "long_name": "from north"}),
         "range": ("range", climate.range, {"units": "m", "long_name": "along the beam"})},
        describe(title="Climate of the echoes of a radar", source="weather radar",
                 elevation=float(climate.elevation), scans=climate.scans,
                 **({} if climate.site is None else {"site": str(climate.site)})),
    )  # fmt: skip
    with replacing(path) as temporary:
        dataset.to_netcdf(temporary, engine="h5netcdf")


@lru_cache(maxsize=8)
def open_climate(path: Path) -> Climate:
    """Return the climate in a file; raise a DataError if it has none."""
    import xarray as xr

    climate = expecting(path, "a climate", "make it by nowcast climate")
    with climate, xr.open_dataset(path, engine="h5netcdf") as data:
        ranges, site = data["range"].values.astype(np.float64), data.attrs.get("site")
        blockage = data["blockage"].values
        if blockage.ndim == 1:  # in files from before terrain models
            blockage = blockage[:, np.newaxis] * (ranges >= FROM).astype(np.float32)
        return Climate(
            float(data.attrs["elevation"]), ranges, data["echo_frequency"].values, blockage,
            int(data.attrs["scans"]), None if site is None else Site.parse(site),
        )  # fmt: skip


def alike(sweep: Sweep, known: Climate | Tally) -> bool:
    """Return whether a sweep has the radar, elevation and gates of others."""
    return (
        abs(sweep.elevation - known.elevation) < 0.2
        and sweep.range.shape == known.range.shape
        and bool(np.allclose(sweep.range, known.range, atol=10.0))
        and (sweep.site is None or known.site is None or sweep.site.near(known.site))
    )


def _rays(sweep: Sweep, rays: int) -> NDArray[np.int64]:
    """Return the index of the turn's part that each ray is in."""
    return (sweep.azimuth * (rays / 360.0)).astype(np.int64) % rays
