"""False echo, blockage and attenuation for simulated sweeps, together with the truth.

Ground (clutter), single gates (speckle), rays (spikes of the sun and of transmitters) and rain from
beyond the radar's range (second trip) are added to the power of the rain before the receiver; hills
and strong rain (attenuation) weaken it on its way. The radar has a magnetron, whose phase differs
in each pulse. The truth is stored with the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from nowcast.simulate.radar import Radar

Float = NDArray[np.float32]

# Specific attenuation of rain at C band, k = A Z^B dB/km one way (Krämer and Verworn, 2008), and
# dB that are lost for a degree of differential phase; a day's drops differ by this factor.
ATTENUATION_A, ATTENUATION_B, DB_A_DEGREE, DROPS = 1.67e-4, 0.7, 0.08, 1.25
# Offset of a radar's differential phase in degrees, and the error of the phase in rain.
PHASE, PHASE_ERROR = 60.0, 2.5
# Sweeps from this elevation on, degrees, look over the hills.
OVER_HILLS = 1.0
# Signal quality index of a steady echo, and standard deviation of one of noise in 32 pulses.
STEADY, UNSTEADY = 0.9, 0.125
# dB by which rain beyond the range is weaker than rain within, since the beam is above it.
OVER_RAIN = 5.0


class Kind(IntEnum):
    """The source of most of a gate's power."""

    RAIN = 0
    CLUTTER = 1
    SPECKLE = 2
    SPIKE = 3
    SECOND_TRIP = 4


@dataclass(frozen=True)
class FalseEcho:
    """The amounts of false echo in simulated volumes."""

    hills: int = 12  #: Patches of ground echo within 60 km, the same in all scans.
    #: Probability that a scan sees as much ground again elsewhere, where the beam is bent down.
    ducts: float = 0.3
    speckle: float = 0.003  #: Share of gates where an echo of one to three gates begins.
    spikes: float = 1.5  #: Mean number of rays with a transmitter or the sun, one to three wide.
    #: Sectors behind an obstacle that takes 30 to 90 % of the power, the same in all scans.
    blocked: int = 2
    attenuation: float = 1.0  #: Factor of the attenuation by rain.
    second_trip: float = 0.3  #: Probability that a scan shows rain from beyond its range.

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 0:
                raise SettingsError(
                    f"FalseEcho, {field.name}: expected a number from 0 on, found "
                    f"{getattr(self, field.name)}; give 0 for none"
                )


@dataclass(frozen=True)
class Disturbed:
    """A sweep with false echo, and the truth. All are (rays, gates)."""

    #: As measured: minus infinity where no echo is heard, NaN where the radar was blind.
    dbz: Float
    rhohv: Float  #: Co-polar correlation coefficient, NaN without echo.
    phidp: Float  #: Differential phase in degrees, NaN without echo.
    coherence: Float  #: Signal quality index, NaN without echo.
    truth: Float  #: dBZ of the rain alone, neither weakened nor noisy.
    kind: NDArray[np.uint8]  #: `Kind` of the echo; 0 also where there is none.

    def moments(self) -> dict[str, NDArray[np.generic]]:
        """Return the moments other than DBZH, by their names in a file."""
        return {
            "RHOHV": self.rhohv, "PHIDP": self.phidp, "SQIH": self.coherence,
            "DBZH_TRUE": self.truth, "FALSE_ECHO": self.kind,
        }  # fmt: skip


def disturb(
    echo: Float, radar: Radar, elevation: float, amount: FalseEcho, seed: tuple[int, ...]
) -> Disturbed:
    """Return a sweep of rain with false echo.

    ``echo`` is the rain's reflectivity, (rays, gates) mm6 m-3. The seed determines the changes from
    scan to scan; hills and obstacles depend only on the radar.
    """
    rng, other = np.random.default_rng((*seed, 17)), np.random.default_rng((*seed, 20))
    noise = radar.noise.astype(np.float32)
    loss = amount.attenuation * rng.uniform(1 / DROPS, DROPS) * _attenuation(echo, radar)
    phase = PHASE + loss / (DB_A_DEGREE * rng.uniform(1 / DROPS, DROPS))
    low = elevation < OVER_HILLS
    blockage = _blockage(radar, amount.blocked) if low else np.float32(0)
    rain = echo * np.power(np.float32(10), -0.1 * (loss + blockage))
    clutter = np.zeros_like(rain)
    if low:
        clutter = _hills(radar, amount.hills, 0)
        if rng.random() < amount.ducts:
            clutter = clutter + _hills(radar, amount.hills, int(rng.integers(1, 1 << 30)))
        clutter = clutter * _decibel(rng.normal(0.0, 1.0, clutter.shape))
    sources = np.stack([rain, clutter, _speckle(rng, noise, rain.shape, amount.speckle),
                        _spikes(rng, noise, rain.shape, amount.spikes),
                        _second_trip(other, echo, radar, amount.second_trip)])  # fmt: skip
    power = sources.sum(axis=0)
    dbz = radar.hear(power, rng)
    heard = np.isfinite(dbz)
    kind = np.where(heard, sources.argmax(axis=0), 0).astype(np.uint8)
    # Rain of the second trip has the polarization of rain.
    part = (sources[0] + sources[4]) / np.maximum(power, np.float32(1e-30))
    # Weak echo is measured worse: the error grows with the noise's part of the power.
    error = rng.standard_normal(dbz.shape, np.float32) * (1 + noise / np.maximum(power, noise / 4))
    false = rng.uniform(0.3, 0.9, dbz.shape)
    # Half of the radars correct the correlation for noise; to the others weak rain looks false.
    known = 1.0 if rng.random() < 0.5 else power / (power + noise)
    rhohv = ((part * 0.985 + (1 - part) * false) * known + 0.015 * error).clip(0, 1)
    random = rng.uniform(0.0, 180.0, dbz.shape)
    phidp = np.where(part > 0.5, phase + PHASE_ERROR * error, random) % 360.0
    steady = STEADY * sources[:3].sum(axis=0) / (power + noise)
    unsteady = UNSTEADY * other.standard_normal((2, *dbz.shape), np.float32)
    coherence = np.hypot(steady + unsteady[0], unsteady[1]).clip(0, 1)
    silent = np.float32(np.nan)
    with np.errstate(divide="ignore"):
        truth = 10 * np.log10(echo)
    return Disturbed(
        dbz,
        np.where(heard, rhohv, silent).astype(np.float32),
        np.where(heard, phidp, silent).astype(np.float32),
        np.where(heard, coherence, silent).astype(np.float32),
        np.where(truth > 10 * np.log10(0.6 * noise), truth, -np.inf).astype(np.float32),
        kind,
    )


def _decibel(values: NDArray[np.floating]) -> Float:
    return np.power(10.0, 0.1 * values).astype(np.float32)


def _attenuation(echo: Float, radar: Radar) -> Float:
    """Return the loss in dB by rain on the way to each gate and back."""
    one_way = np.float32(ATTENUATION_A) * np.power(echo, np.float32(ATTENUATION_B))
    return np.asarray(2e-3 * radar.gate_length * (np.cumsum(one_way, axis=1) - one_way), np.float32)


@lru_cache(maxsize=8)
def _blockage(radar: Radar, sectors: int) -> Float:
    """Return the loss in dB by obstacles, (rays, gates)."""
    rng = np.random.default_rng(18)
    loss = np.zeros((radar.rays, radar.gates), np.float32)
    for _ in range(sectors):
        middle, width = rng.uniform(0, 360), rng.uniform(3, 8)
        apart = np.abs((radar.azimuth - middle + 180) % 360 - 180)
        taken = rng.uniform(0.3, 0.9) * np.clip(1.5 - apart / width * 2, 0, 1)
        behind = radar.range > rng.uniform(5e3, 20e3)
        loss += (-10 * np.log10(1 - taken))[:, None] * behind
    return loss


@lru_cache(maxsize=8)
def _hills(radar: Radar, count: int, seed: int) -> Float:
    """Return the reflectivity of patches of ground, (rays, gates) mm6 m-3."""
    rng = np.random.default_rng((19, seed))
    dbz = np.full((radar.rays, radar.gates), -99.0)
    for _ in range(count):
        place, angle = rng.uniform(3e3, 60e3), rng.uniform(0, 360)
        deep, wide, peak = rng.uniform(1e3, 4e3), rng.uniform(1e3, 4e3), rng.uniform(35, 60)
        across = np.deg2rad((radar.azimuth - angle + 180) % 360 - 180)[:, None] * radar.range
        apart = np.square((radar.range - place) / deep) + np.square(across / wide)
        dbz = np.maximum(dbz, peak - 25 * apart)
    # Houses and slopes: neighbouring gates differ by many dB.
    return np.where(dbz > 0, _decibel(dbz + rng.normal(0, 7, dbz.shape)), np.float32(0))


def _speckle(rng: np.random.Generator, noise: Float, shape: tuple[int, int], share: float) -> Float:
    """Return the reflectivity of planes, birds and receiver faults, 5 to 30 dB above the noise."""
    begins = rng.random(shape) < share
    longer = np.roll(begins, 1, axis=1) & (rng.random(shape) < 0.5)
    longest = np.roll(longer, 1, axis=1) & (rng.random(shape) < 0.5)
    return (begins | longer | longest) * noise * _decibel(rng.uniform(5, 30, shape))


def _second_trip(rng: np.random.Generator, echo: Float, radar: Radar, chance: float) -> Float:
    """Return the reflectivity of rain from beyond the range, which is copied from another side."""
    if rng.random() >= chance:
        return np.zeros_like(echo)
    beyond = radar.range / (radar.range + radar.gates * radar.gate_length)
    farther = np.square(beyond) * 10 ** (-0.1 * OVER_RAIN)
    side = int(rng.integers(len(echo)))
    return np.asarray(np.roll(echo, side, axis=0) * farther, np.float32)


def _spikes(rng: np.random.Generator, noise: Float, shape: tuple[int, int], mean: float) -> Float:
    """Return the reflectivity of rays that receive a constant power, whole or in bursts."""
    result = np.zeros(shape, np.float32)
    for _ in range(rng.poisson(mean)):
        first, level = int(rng.integers(shape[0])), rng.uniform(4, 20)
        for ray in range(first, first + int(rng.integers(1, 4))):
            fade = 10.0 if ray > first else 0.0
            on = rng.random(shape[1]) < rng.choice([1.0, 1.0, 0.85])
            strength = level - fade * rng.random() + rng.normal(0, 0.7, shape[1])
            result[ray % shape[0]] += on * noise * _decibel(strength)
    return result
