"""Ground and obstacles are learnt from sweeps, saved in a file, and corrected in others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.ingest.ingest import ingest
from nowcast.quality.clean import clean
from nowcast.quality.climate import FEWEST, Tally, open_climate, write_climate
from nowcast.radar.polar.sweep import Sweep

RAYS, GATES, LOSS = 120, 80, 6.0


def sweeps(count: int) -> list[Sweep]:
    """Return sweeps of showers, ground at rays 10 to 14, and an obstacle before rays 60 to 65."""
    rng, result = np.random.default_rng(0), []
    x = (np.arange(GATES) + 0.5) * 1000.0
    azimuth = (np.arange(RAYS) + 0.5) * 360 / RAYS
    for _ in range(count):
        middle, far = rng.uniform(0, RAYS, (6, 1, 1)), rng.uniform(25, 75, (6, 1, 1))
        apart = (np.arange(RAYS)[:, np.newaxis] - middle + RAYS / 2) % RAYS - RAYS / 2
        shower = 45 - np.square(apart / 4) * 6 - np.square((x / 1000 - far) / 5) * 6
        dbz = shower.max(axis=0) + rng.normal(0, 1, (RAYS, GATES))
        dbz[60:66] -= LOSS
        dbz[dbz < 0] = -np.inf
        dbz[10:15, 5:12] = rng.normal(40, 6, (5, 7))
        time = np.datetime64("2020-06-01", "ms")
        result.append(Sweep(0.5, azimuth, x, time, None, dbz.astype(np.float32), None))
    return result


@pytest.fixture(scope="module")
def climate():
    tally = Tally()
    for sweep in sweeps(2 * FEWEST):
        tally.add(sweep)
    tally.add(replace(sweeps(1)[0], elevation=1.5))
    assert (tally.scans, tally.others) == (2 * FEWEST, 1)
    return tally.climate()


def test_ground_and_obstacles_are_learnt(climate):
    assert climate.ground[10:15, 5:12].all()
    assert climate.ground.sum() == 35
    np.testing.assert_allclose(climate.blockage[61:65, -1], LOSS, atol=1.5)
    # With so few showers the loss varies from ray to ray.
    assert climate.blockage[np.r_[0:59, 67:RAYS]].max() < LOSS / 2


def test_learnt_ground_is_removed_and_learnt_blockage_compensated(climate, tmp_path):
    write_climate(climate, tmp_path / "climate.nc")
    known = open_climate(tmp_path / "climate.nc")
    (sweep,) = sweeps(1)
    result = clean(sweep, ("climate",), climate=known)
    assert set(result.counts) == {"echo", "climate"}
    assert not np.isfinite(result.sweep.dbz[10:15, 5:12]).any()
    behind = np.isfinite(sweep.dbz[62]) & (sweep.range > 20e3)
    gain = result.sweep.dbz[62, behind] - sweep.dbz[62, behind]
    np.testing.assert_allclose(gain, LOSS, atol=1.5)
    wall = replace(known, blockage=known.blockage * 3)
    assert np.isnan(clean(sweep, ("climate",), climate=wall).sweep.dbz[62, 20:]).all()
    # A sweep of a higher elevation looks over both.
    above = replace(sweep, elevation=3.0)
    np.testing.assert_array_equal(clean(above, ("climate",), climate=known).sweep.dbz, above.dbz)


def test_too_few_scans_and_other_files_are_refused(tmp_path):
    tally = Tally()
    tally.add(sweeps(1)[0])
    with pytest.raises(DataError, match=f"climate: expected {FEWEST} scans .* found 1"):
        tally.climate()
    (tmp_path / "climate.nc").write_text("none")
    with pytest.raises(DataError, match="expected a climate, found something else"):
        ingest([tmp_path], tmp_path / "rain.zarr", climate=tmp_path / "climate.nc")
