"""The simulated radar: the path of its beam, and the echo of rain along it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from daskdl.errors import SettingsError
from nowcast.simulate.radar import A, B, Radar
from nowcast.simulate.weather import Weather

#: A radar without lost rays, for comparisons gate by gate.
CLEAR = Radar(blocked=(), gap=0.0)


class Uniform(Weather):
    """The same rain everywhere."""

    rate = 5.0

    def rain_field(self, time, x, y):
        return np.full(np.broadcast_shapes(np.shape(x), np.shape(y)), self.rate, np.float32)


class Spot(Weather):
    """Rain in one disc of three kilometres, (60, 80) km from the radar."""

    def rain_field(self, time, x, y):
        inside = np.hypot(np.asarray(x) - 60e3, np.asarray(y) - 80e3) < 3e3
        return np.where(inside, np.float32(30), np.float32(0))


def measure(weather: Weather, radar: Radar = CLEAR, elevation: float = 0.5, seed: int = 0):
    return radar.measure(weather, 600.0, elevation, np.random.default_rng(seed))


def test_beam_height_and_distance():
    ground, height = Radar(height=0.0).beam(1.0)
    # In tables for 4/3 of the earth's radius a beam at 1 degree is 2.59 km high at 100 km.
    at = np.searchsorted(Radar().range, 100e3)
    assert height[at] == pytest.approx(
        100e3 * np.sin(np.deg2rad(1.0)) + 1e10 / (2 * 8.4947e6), 0.01
    )
    assert ground[at] < Radar().range[at]
    assert (np.diff(height) > 0).all()


def test_beam_agrees_with_xradar(tmp_path):
    import xradar  # noqa: F401
    from xradar.georeference import antenna_to_cartesian

    radar = Radar(height=120.0)
    ground, height = radar.beam(1.5)
    x, y, z = antenna_to_cartesian(radar.range, 90.0, 1.5, site_altitude=120.0)
    np.testing.assert_allclose(height, z, atol=15.0)
    np.testing.assert_allclose(ground, x, rtol=1e-3)
    np.testing.assert_allclose(y, 0.0, atol=1e-6)


def test_uniform_rain_gives_its_reflectivity_near_the_radar():
    dbz = measure(Uniform())
    expected = 10 * np.log10(A * Uniform.rate**B)
    near = dbz[:, 20:60]
    assert np.isfinite(near).all()
    # Half a dB is lost in the rain below the freezing level.
    assert near.mean() == pytest.approx(expected, abs=0.5)
    assert 0.5 < near.std() < 1.0


def test_reflectivity_falls_with_height():
    low, high = measure(Uniform()), measure(Uniform(), elevation=1.5)
    assert low[:, -20:].mean() < low[:, 20:60].mean() - 0.3
    assert high[:, -20:].mean() < low[:, -20:].mean() - 3.0


def test_weak_rain_is_heard_near_and_not_far():
    class Drizzle(Uniform):
        rate = 0.006  # -12.5 dBZ

    dbz = measure(Drizzle())
    assert np.isfinite(dbz[:, :30]).mean() > 0.99
    assert np.isneginf(dbz[:, -30:]).mean() > 0.99
    assert not np.isnan(dbz).any()


def test_noise_rarely_counts_as_echo():
    class Dry(Uniform):
        rate = 0.0

    dbz = measure(Dry())
    assert np.isneginf(dbz).mean() > 0.998
    # Such echo is too weak for rain.
    assert dbz.max() < 5.0


def test_a_spot_is_in_its_place_and_widened_by_the_beam():
    dbz = measure(Spot())
    power = np.where(np.isfinite(dbz), 10 ** (0.1 * dbz), 0.0)
    ray = (power.sum(1) * np.arange(360)).sum() / power.sum() + 0.5
    gate = (power.sum(0) * CLEAR.range).sum() / power.sum()
    assert ray == pytest.approx(np.degrees(np.arctan2(60, 80)), abs=0.3)
    assert gate == pytest.approx(100e3, abs=500.0)
    seen = np.ptp(np.flatnonzero((dbz > 20).any(1))) + 1
    wide = np.ptp(np.flatnonzero((measure(Spot(), replace(CLEAR, beamwidth=3.0)) > 20).any(1))) + 1
    assert 6e3 / 100e3 < np.deg2rad(seen) < 12e3 / 100e3
    assert wide > seen


def test_blocked_and_lost_rays_are_missing():
    dbz = measure(Uniform(), Radar(blocked=(10, 11), gap=0.0))
    assert np.isnan(dbz).all(1).nonzero()[0].tolist() == [10, 11]
    lost = measure(Uniform(), Radar(blocked=(), gap=1.0))
    assert 1 <= np.isnan(lost).all(1).sum() <= 3
    assert not np.isnan(measure(Uniform())).any()


def test_blocked_rays_must_exist():
    with pytest.raises(SettingsError, match=r"blocked: expected rays from 0 to 35, found \[131"):
        Radar(rays=36)
    assert Radar(rays=36, blocked=()).rays == 36
    with pytest.raises(SettingsError, match="expected at least one ray"):
        Radar(rays=0, blocked=())
