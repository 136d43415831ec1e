"""The cleaning of an ingest: removed echo is counted, flagged and shown."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import DataError
from nowcast.cli import app
from nowcast.ingest.ingest import ingest
from nowcast.quality.clean import STEPS
from nowcast.rain.store import open_rain
from nowcast.simulate import FalseEcho, Radar, simulate

AMOUNT = FalseEcho(spikes=4, second_trip=1)


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scans")
    radar = Radar(blocked=(), gap=0.0)
    return simulate(folder, hours=0.5, seed=2, radar=radar, false_echo=AMOUNT)


def test_flags_mark_cells_of_removed_echo(scans, tmp_path):
    store, raw = tmp_path / "rain.zarr", tmp_path / "raw.zarr"
    small = {"size": 120, "spacing": 2000.0}
    report = ingest(scans[:1], store, keep_flags=True, **small)
    ingest(scans[1:], store, keep_flags=True, **small)
    ingest(scans, raw, clean="none", **small)
    assert set(report.removed) == {"echo", "texture", "spikes", "speckle", "second_trip"}
    assert min(report.removed.values()) > 0
    assert report.cleaning().startswith("of the echo were taken out: texture ")
    with open_rain(store) as clean, open_rain(raw) as uncleaned:
        flags, rain = clean["clean_flags"], clean["rain_rate"].values
        assert flags.dtype == np.uint8
        assert flags.shape == rain.shape
        meanings = dict(
            zip(flags.attrs["flag_meanings"].split(), flags.attrs["flag_masks"], strict=True)
        )
        assert tuple(meanings) == STEPS
        for step in ("texture", "spikes", "speckle", "second_trip"):
            assert (flags.values & meanings[step] > 0).any(axis=(1, 2)).all(), step
        same = (rain == uncleaned["rain_rate"].values) | np.isnan(rain)
        assert same[flags.values == 0].all()
        assert not same[flags.values > 0].all()
        assert clean["rain_rate"].attrs["ancillary_variables"] == "clean_flags"
    with pytest.raises(DataError, match="made with ancillary_variables None"):
        ingest(scans, raw, clean="none", keep_flags=True, **small)


def test_the_picture_shows_a_polar_scan_alone(scans, tmp_path, capsys):
    picture = tmp_path / "cleaning.png"
    assert run(app, ["plot", "--before-after", str(scans[0]), "--out", str(picture)]) == 0
    assert picture.stat().st_size > 10_000
    assert run(app, ["plot", "--before-after", str(scans[0]), "--out", "picture.gif"]) == 2
    assert "expected a polar scan and the name of a .png" in capsys.readouterr().err
