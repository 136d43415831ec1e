"""Simulated scans with false echo, and the truth in their files."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import SettingsError
from nowcast.cli import app
from nowcast.radar.header import Format
from nowcast.radar.reader import read_sweeps
from nowcast.simulate import FalseEcho, Kind, Radar, Weather
from nowcast.simulate.false_echo import PHASE, disturb

RADAR = Radar(blocked=(), gap=0.0)
NONE = FalseEcho(hills=0, ducts=0, speckle=0, spikes=0, blocked=0, attenuation=0, second_trip=0)


@pytest.fixture(scope="module")
def echo():
    return RADAR.echo(Weather(2, 2), 3600.0, 0.5)


def test_without_false_echo_there_is_only_rain(echo):
    seen = disturb(echo, RADAR, 0.5, NONE, (1,))
    strong = seen.truth > 15
    assert strong.any()
    assert not seen.kind.any()
    assert np.abs(seen.dbz[strong] - seen.truth[strong]).mean() < 1
    assert np.abs(np.median(seen.phidp[strong]) - PHASE) < 1


def test_each_kind_occurs_and_a_seed_gives_the_same_echo(echo):
    amount = FalseEcho(spikes=5, second_trip=1)
    seen, again = (disturb(echo, RADAR, 0.5, amount, (1,)) for _ in range(2))
    np.testing.assert_array_equal(seen.dbz, again.dbz)
    assert set(np.unique(seen.kind)) == set(Kind)
    assert np.median(seen.rhohv[(seen.kind == Kind.RAIN) & (seen.dbz > 20)]) > 0.97
    assert np.median(seen.rhohv[seen.kind == Kind.CLUTTER]) < 0.75
    assert np.median(seen.rhohv[seen.kind == Kind.SECOND_TRIP]) > 0.85
    assert np.median(seen.coherence[(seen.kind == Kind.RAIN) & (seen.dbz > 20)]) > 0.8
    assert np.median(seen.coherence[seen.kind == Kind.SECOND_TRIP]) < 0.3
    # A higher beam meets neither ground nor obstacles.
    above = disturb(echo, RADAR, 1.5, FalseEcho(spikes=5), (1,))
    assert not (above.kind == Kind.CLUTTER).any()


def test_strong_rain_and_obstacles_weaken_echo_behind_them(echo):
    for amount in (FalseEcho(0, 0, 0, 0, 0, 1.0, 0), FalseEcho(0, 0, 0, 0, 2, 0.0, 0)):
        seen = disturb(echo, RADAR, 0.5, amount, (1,))
        heard = np.isfinite(seen.dbz) & np.isfinite(seen.truth)
        assert np.percentile(seen.truth[heard] - seen.dbz[heard], 99) > 2.5


def test_scans_have_the_truth_in_their_files(tmp_path):
    out = tmp_path / "scans"
    command = ["simulate", "--out", str(out), "--scans", "--false-echo", "--hours", "0.4"]
    assert run(app, command, install="") == 0
    path, *_ = sorted(out.iterdir())
    (sweep,) = read_sweeps([path], Format.ODIM)
    assert np.nanmax(sweep.rhohv) <= 1
    assert sweep.phidp is not None
    assert np.nanmax(sweep.coherence) <= 1
    with h5py.File(path) as file:
        kinds = {
            bytes(group["what"].attrs["quantity"]): group["data"][:]
            for name, group in file["dataset1"].items() if name.startswith("data")
        }  # fmt: skip
    assert set(np.unique(kinds[b"FALSE_ECHO"])) >= {1, 2}
    assert (kinds[b"DBZH_TRUE"] > 0).any()


def test_negative_amounts_are_refused():
    with pytest.raises(SettingsError, match="speckle: expected a number from 0 on, found -1"):
        FalseEcho(speckle=-1)
