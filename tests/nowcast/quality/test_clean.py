"""False echo is removed from simulated sweeps, whose truth is known, and rain stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nowcast.quality.attenuation import CAP
from nowcast.quality.clean import DEFAULT, STEPS, clean
from nowcast.quality.speckle import GATES, speckle
from nowcast.quality.spikes import spikes
from nowcast.radar.polar.sweep import Sweep
from nowcast.simulate import FalseEcho, Kind, Radar, Weather
from nowcast.simulate.false_echo import ATTENUATION_A, ATTENUATION_B, DB_A_DEGREE, disturb

RADAR = Radar(blocked=(), gap=0.0)


def sweep_of(dbz, rhohv=None, phidp=None) -> Sweep:
    rays, gates = dbz.shape
    return Sweep(
        elevation=0.5,
        azimuth=(np.arange(rays) + 0.5) * 360 / rays,
        range=(np.arange(gates) + 0.5) * 500.0,
        time=np.datetime64("2020-06-01", "ms"),
        site=None,
        dbz=np.asarray(dbz, np.float32),
        rhohv=rhohv,
        phidp=phidp,
    )


def simulated(amount):
    return [
        disturb(RADAR.echo(Weather(seed, 2), 3600.0, 0.5), RADAR, 0.5, amount, (seed, 0))
        for seed in range(3)
    ]


@pytest.fixture(scope="module")
def disturbed():
    return simulated(FalseEcho(spikes=4, second_trip=0))


def shares(disturbed, steps, kinds, other=None) -> tuple[float, float]:
    """Return the share of false echo of some kinds that is removed, and of rain that stays.

    ``other`` returns moments that replace some of a sweep's.
    """
    removed = remaining = false = rain = 0
    for seen in disturbed:
        moments = {"coherence": seen.coherence} | (other(seen) if other else {})
        sweep = replace(sweep_of(seen.dbz, seen.rhohv, seen.phidp), **moments)
        result = clean(sweep, steps)
        echo = seen.dbz >= 7
        wrong, right = echo & np.isin(seen.kind, kinds), echo & (seen.kind == Kind.RAIN)
        removed, false = removed + (wrong & (result.flags > 0)).sum(), false + wrong.sum()
        remaining, rain = remaining + (right & (result.sweep.dbz >= 7)).sum(), rain + right.sum()
    return removed / false, remaining / rain


def test_speckle_and_spikes_go_and_rain_stays(disturbed):
    removed, remaining = shares(disturbed, ("spikes",), [Kind.SPIKE])
    assert removed > 0.95
    assert remaining > 0.995
    removed, remaining = shares(disturbed, ("speckle",), [Kind.SPECKLE])
    assert removed > 0.9  # echo that touches rain or a hill is not small
    assert remaining > 0.995


@given(st.integers(0, 35), st.integers(0, 2**32 - 1))
def test_north_is_no_border(turn, seed):
    echo = np.random.default_rng(seed).random((36, 40)) < 0.2
    small = speckle(echo)
    assert not (small & ~echo).any()
    np.testing.assert_array_equal(speckle(np.roll(echo, turn, 0)), np.roll(small, turn, 0))


def test_echo_of_the_least_size_stays():
    echo = np.zeros((360, 50), bool)
    echo[[358, 359, 0, 1, 2], 10] = echo[2, 10 : 10 + GATES - 4] = True
    assert echo.sum() == GATES
    assert not speckle(echo).any()
    echo[2, 10] = False
    assert speckle(echo).sum() == GATES - 1


def test_a_spike_across_a_shower_leaves_no_hole():
    dbz = np.full((360, 240), -np.inf, np.float32)
    dbz[60:80, 100:140] = 30.0
    spike = dbz.copy()
    power = np.float32(20) * np.log10((np.arange(240, dtype=np.float32) + 0.5) / 2) + 2
    spike[70] = np.maximum(dbz[70], power)
    result = clean(sweep_of(spike), ("spikes",))
    assert result.flags.any()
    np.testing.assert_allclose(result.sweep.dbz[60:80, 103:137], 30.0, atol=1e-3)
    assert np.isneginf(result.sweep.dbz[70, :95]).all()
    assert not spikes(dbz, sweep_of(dbz).range).any()


def test_ground_is_rough_and_rain_is_not(disturbed):
    removed, remaining = shares(disturbed, ("texture",), [Kind.CLUTTER])
    assert removed > 0.95
    assert remaining > 0.99
    removed, remaining = shares(disturbed, DEFAULT, list(Kind)[1:])
    assert removed > 0.95
    assert remaining > 0.99
    # Without polarimetric moments showers look like ground.
    alone = sweep_of(disturbed[0].dbz)
    assert "texture" not in clean(alone, ("texture",)).counts


def test_smooth_echo_of_a_low_correlation_stays_and_rough_phase_alone_takes_nothing():
    rng = np.random.default_rng(0)
    dbz = 20 + rng.normal(0, 1, (72, 60)).astype(np.float32)
    low, phase = np.full_like(dbz, 0.7), rng.uniform(0, 180, dbz.shape).astype(np.float32)
    assert not clean(sweep_of(dbz, low), ("texture",)).flags.any()
    assert not clean(sweep_of(dbz, None, phase), ("texture",)).flags.any()
    assert np.mean(clean(sweep_of(dbz, low, phase), ("texture",)).flags > 0) > 0.9
    # Phase folds at 360 degrees.
    folding = np.where(np.arange(60) % 2, 359.0, 1.0) + np.zeros_like(dbz)
    assert not clean(sweep_of(dbz, low, folding.astype(np.float32)), ("texture",)).flags.any()


def test_echo_of_the_second_trip_is_incoherent_and_rain_is_not(disturbed):
    folded = simulated(FalseEcho(second_trip=1))

    def by_velocity(seen):
        """Return velocities of a folded wind, and random ones in the second trip."""
        rng = np.random.default_rng(0)
        wind = 1.5 * np.cos(np.radians(np.arange(360.0)))[:, None]
        velocity = wind + rng.normal(0, 0.15, seen.dbz.shape)
        random = rng.uniform(-1, 1, seen.dbz.shape)
        velocity = np.where(seen.kind == Kind.SECOND_TRIP, random, velocity)
        velocity = ((velocity + 1) % 2 - 1).astype(np.float32)
        return {"coherence": None, "velocity": np.where(np.isfinite(seen.dbz), velocity, np.nan)}

    for other, least in ((None, 0.96), (by_velocity, 0.9)):
        removed, remaining = shares(folded, ("second_trip", "speckle"), [Kind.SECOND_TRIP], other)
        assert removed > least
        assert remaining > 0.99
    # Without coherence and velocity the step is skipped.
    assert "second_trip" not in clean(sweep_of(disturbed[0].dbz), STEPS).counts


def test_low_correlation_is_no_rain_and_unmeasured_stays():
    dbz = np.array([[3.0, np.nan, 9.0], [5.0, 6.0, -np.inf]], np.float32)
    rhohv = np.array([[0.2, 0.5, np.nan], [0.2, 0.3, 0.5]], np.float32)
    result = clean(sweep_of(dbz, rhohv), ("correlation",))
    assert result.flags.tolist() == [[1, 0, 0], [1, 1, 0]]
    assert result.counts == {"echo": 1, "correlation": 0}
    assert np.isnan(result.sweep.dbz[0, 1])
    assert result.sweep.dbz[0, 2] == 9.0


def test_attenuation_is_corrected_where_it_occurs():
    rng = np.random.default_rng(0)
    truth = np.full((360, 240), -np.inf, np.float32)
    truth[:90, 40:75] = 45 + rng.normal(0, 1, (90, 35))
    truth[200, 40:60] = 30.0
    one_way = ATTENUATION_A * 10 ** (0.1 * ATTENUATION_B * truth)
    taken = 2 * 0.5 * (np.cumsum(one_way, axis=1) - 0.5 * one_way).astype(np.float32)
    phidp = np.where(np.isfinite(truth), (355 + taken / DB_A_DEGREE) % 360, np.nan)
    measured = sweep_of(truth - taken, None, phidp.astype(np.float32))
    assert taken.max() > 6
    for sweep in (measured, replace(measured, phidp=None)):
        corrected = clean(sweep, (), attenuation="C").sweep.dbz
        rain = np.isfinite(truth)
        assert np.abs(corrected[rain] - truth[rain]).max() < 1.0
        assert np.isneginf(corrected[~rain]).all()
    # With a radar 10 dB too strong the correction stops at the cap.
    strong = clean(sweep_of(truth + 10), (), attenuation="X").sweep.dbz
    assert (strong[rain] - truth[rain]).max() <= 10 + CAP + 1e-3


def test_sweeps_with_nothing_to_clean_stay(disturbed):
    dry = sweep_of(np.full((360, 20), -np.inf))
    assert not clean(dry, STEPS).flags.any()
    missing = replace(dry, dbz=np.full_like(dry.dbz, np.nan))
    assert np.isnan(clean(missing, STEPS).sweep.dbz).all()
    some = sweep_of(disturbed[0].dbz)
    np.testing.assert_array_equal(clean(some, ()).sweep.dbz, some.dbz)
