"""The excess of a bright band is removed; rain below it and showers stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import DataError, SettingsError
from nowcast.cli import app
from nowcast.ingest.ingest import ingest
from nowcast.quality.bright_band import CONVECTIVE, STRATIFORM, freezing_level
from nowcast.quality.clean import STEPS, clean
from nowcast.radar.header import Site
from nowcast.radar.polar.sweep import Sweep
from nowcast.rain.store import open_rain
from nowcast.simulate import Radar, Weather, simulate

PLAIN = Radar(gates=400, blocked=(), gap=0.0)
BAND = replace(PLAIN, bright_band=7.0)
SITE = Site(PLAIN.latitude, PLAIN.longitude, PLAIN.height)
FREEZING = 2500.0
FLAG = 1 << STEPS.index("bright_band")


def sweep_of(dbz, elevation, site=SITE) -> Sweep:
    time = np.datetime64("2020-06-01", "ms")
    return Sweep(elevation, PLAIN.azimuth, PLAIN.range, time, site, dbz.astype(np.float32), None)


@pytest.mark.parametrize("elevation", [1.5, 3.0])
def test_a_band_of_known_excess_goes_and_rain_below_it_stays(elevation):
    truth, band = (
        radar.measure(Weather(1, 2), 3600.0, elevation, np.random.default_rng(0))
        for radar in (PLAIN, BAND)
    )
    result = clean(sweep_of(band, elevation), (), freezing=FREEZING)
    after = result.sweep.dbz
    height = np.broadcast_to(PLAIN.beam(elevation)[1], truth.shape)
    rain = (truth >= 7) & (truth < STRATIFORM - 7) & np.isfinite(band)
    melting = rain & (height > 2050) & (height < 2350)
    assert melting.sum() > 300
    excess = band[melting].mean() - truth[melting].mean()
    assert excess > 3
    assert abs(after[melting].mean() - truth[melting].mean()) < excess / 2
    assert ((result.flags & FLAG) > 0)[melting].mean() > 0.95
    assert result.counts["bright_band"] == np.count_nonzero(result.flags & FLAG)
    below = rain & (height < 1400)
    assert below.sum() > 300
    assert np.abs(after[below] - band[below]).max() < 0.3
    assert not result.flags[below].any()
    # Above it snow echoes less than the rain that it becomes.
    aloft = rain & (height > 4000) & (height < 5000)
    assert (after[aloft] - band[aloft]).mean() > 4


def test_showers_and_gates_without_echo_stay():
    dbz = np.full((360, 400), CONVECTIVE)
    dbz[::2], dbz[5], dbz[7] = STRATIFORM, -np.inf, np.nan
    rain = clean(sweep_of(dbz, 1.5), (), freezing=FREEZING).sweep.dbz
    assert rain[0].min() < STRATIFORM - 4
    assert (rain[1] == CONVECTIVE).all()
    after = clean(sweep_of(dbz, 1.5), STEPS, freezing=FREEZING).sweep.dbz
    assert np.isneginf(after[5]).all()
    assert np.isnan(after[7]).all()
    # A radar above the freezing level sees only snow, which has no band.
    above = clean(sweep_of(dbz, 0.5, Site(50.0, 5.0, 3500.0)), (), freezing=FREEZING)
    assert not above.flags.any()


def test_a_series_is_interpolated_and_used_for_12_hours_beyond(tmp_path):
    path = tmp_path / "freezing.csv"
    path.write_text("time,height\n2026-05-20T12:00Z,2400\n2026-05-20T00:00Z,2000\n")
    time = np.datetime64("2026-05-20T06:00")
    assert freezing_level(path, time) == pytest.approx(2200)
    assert freezing_level(path, time + np.timedelta64(17, "h")) == 2400
    with pytest.raises(DataError, match=r"within 12 hours of 2026-05-21T03:00Z, found some from"):
        freezing_level(path, np.datetime64("2026-05-21T03:00"))
    for text in ("time,level\n2026-05-20,3\n", "time,height\n2026-05-20,high\n", "time,height\n"):
        bad = tmp_path / f"{len(text)}.csv"
        bad.write_text(text)
        with pytest.raises(DataError, match="expected a CSV with the columns time, height"):
            freezing_level(bad, time)
    with pytest.raises(DataError, match="found none there"):
        freezing_level(tmp_path / "none.csv", time)


@pytest.mark.slow
def test_ingest_lowers_the_band_and_the_picture_shows_one_time(tmp_path, capsys):
    radar = replace(BAND, elevations=(3.0,))
    scans = simulate(tmp_path / "scans", hours=0.2, step_minutes=5, seed=1, radar=radar)
    small = {"size": 100, "spacing": 2000.0}
    report = ingest(scans, tmp_path / "rain.zarr", freezing=FREEZING, keep_flags=True, **small)
    ingest(scans, tmp_path / "raw.zarr", **small)
    assert report.removed["bright_band"] > 100
    assert "bright_band" in report.cleaning()
    with open_rain(tmp_path / "rain.zarr") as rain, open_rain(tmp_path / "raw.zarr") as raw:
        lowered = rain["clean_flags"].values & FLAG > 0
        assert lowered.any()
        assert (rain["rain_rate"].values < raw["rain_rate"].values)[lowered].mean() > 0.9
        assert "bright_band" in rain["rain_rate"].attrs["cleaning"]
    with pytest.raises(SettingsError, match="expected steps of correlation, texture"):
        ingest(scans, tmp_path / "c.zarr", clean="bright_band")
    with pytest.raises(DataError, match="expected a file of freezing levels"):
        ingest(scans, tmp_path / "d.zarr", freezing=str(tmp_path / "none.csv"))
    plot = ["plot", "--before-after", *map(str, scans), "--freezing", "2500"]
    picture = tmp_path / "band.png"
    assert run(app, [*plot, "--out", str(picture)]) == 2
    assert "expected the time of one of 2 scans" in capsys.readouterr().err
    time = f"{open_rain(tmp_path / 'raw.zarr')['time'].values[1].astype('M8[m]')}"
    assert run(app, [*plot, "--at", time, "--out", str(picture)]) == 0
    assert picture.stat().st_size > 10_000
