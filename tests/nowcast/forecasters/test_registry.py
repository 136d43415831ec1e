"""Persistence, extrapolation and the registry of forecasters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from daskdl.errors import DataError, MissingExtraError, SettingsError, ShapeError
from nowcast.forecasters import Extrapolation, Persistence, Pysteps, Sprog, forecaster, method_names
from nowcast.forecasters import pysteps as module
from nowcast.forecasters.trained import Trained
from tests.nowcast.stores import small_model, translation

GRID = {"spacing_km": 1.0, "step_minutes": 5.0}


def test_names_are_listed_and_accepted():
    assert method_names()[:4] == ["auto", "persistence", "extrapolation", "sprog"]
    assert forecaster("persistence") == Persistence()
    with pytest.raises(SettingsError, match=r"expected one of auto, persistence, .* found 'lk'"):
        forecaster("lk")


def test_auto_takes_a_model_only_if_it_passed_its_gate(tmp_path):
    model = small_model()
    assert isinstance(forecaster("auto"), Sprog)
    for gate, kind, words in (
        ({}, Sprog, "not compared with sprog; sprog is taken"),
        ({"passed": False, "sentence": "no better"}, Sprog, "no better; sprog is taken"),
        ({"passed": True, "sentence": "better"}, Trained, "better; it is taken"),
    ):
        model.about["gate"] = gate
        model.save(tmp_path / "m")
        lines: list[str] = []
        assert isinstance(forecaster("auto", tmp_path / "m", say=lines.append), kind)
        assert len(lines) == 1
        assert lines[0].startswith(f"{tmp_path / 'm'}: the network is {words}")
        assert isinstance(forecaster("model", tmp_path / "m"), Trained)


def test_a_gate_passed_on_simulated_rain_counts_only_there(tmp_path):
    model = small_model()
    model.about["gate"] = {"passed": True, "sentence": "better", "simulated": True}
    model.save(tmp_path / "m")
    lines: list[str] = []
    assert isinstance(forecaster("auto", tmp_path / "m", say=lines.append), Sprog)
    assert lines == [f"{tmp_path / 'm'}: the network is better; sprog is taken (or --method model)"]
    assert isinstance(forecaster("auto", tmp_path / "m", simulated=True), Trained)
    # In models of older versions simulated training data decide.
    model.about.update(gate={"passed": True, "sentence": "better"}, simulated=True)
    model.save(tmp_path / "m")
    assert isinstance(forecaster("auto", tmp_path / "m"), Sprog)


def test_a_model_needs_its_folder(tmp_path):
    with pytest.raises(SettingsError, match="add --model FOLDER, or choose --method auto"):
        forecaster("model")
    with pytest.raises(DataError, match="expected a model that nowcast train wrote"):
        forecaster("auto", tmp_path)


def test_repeats_the_last_frame_with_its_missing_cells():
    rain = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    rain[-1, 0, 0] = np.nan
    forecast = Persistence().forecast(rain, 3, **GRID).rain
    np.testing.assert_array_equal(forecast, np.stack([rain[-1]] * 3))


def knmi_frames(radar_dir: Path, first: int, count: int) -> np.ndarray:
    """Rain rate in mm h-1 on 320 x 320 pixels of 1 km around the rain of the event."""
    h5py = pytest.importorskip("h5py")
    paths = sorted((radar_dir / "knmi").rglob("*.h5"))[first : first + count]
    frames = np.empty((count, 320, 320), np.float32)
    for frame, path in zip(frames, paths, strict=True):
        with h5py.File(path) as file:
            counts = file["image1/image_data"][220:540, 200:520]
        frame[...] = np.where(counts == 65535, np.nan, counts * np.float32(0.12))
    return frames


def test_one_frame_has_no_motion():
    with pytest.raises(ShapeError, match=r"extrapolation: .*time >= 2.*found \(1, 32, 32\)"):
        Extrapolation().forecast(np.zeros((1, 32, 32), np.float32), 2, **GRID)


@pytest.mark.slow
def test_beats_persistence_on_real_rain_at_30_minutes(radar_dir):
    hits = np.zeros((2, 3))
    for first in (10, 40, 70):
        frames = knmi_frames(radar_dir, first, 9)
        methods = (Extrapolation(), Persistence())
        moved, still = (m.forecast(frames[:3], 6, **GRID).rain[-1] for m in methods)
        observed = frames[-1]
        pixels = np.isfinite(moved) & np.isfinite(still) & np.isfinite(observed)
        o = (observed >= 1) & pixels
        for row, forecast in zip(hits, (moved, still), strict=True):
            f = (forecast >= 1) & pixels
            row += (f & o).sum(), f.sum(), o.sum()
    both, forecast_events, observed_events = hits.T
    skill = both / (forecast_events + observed_events - both)
    assert observed_events[0] > 5000
    assert skill[0] > 1.5 * skill[1]


needs_pysteps = pytest.mark.skipif(not module.pysteps_installed(), reason="needs pysteps")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(module, "pysteps_installed", lambda: False)
    with pytest.raises(MissingExtraError, match=r"pysteps:sprog .* 'daskdl\[pysteps\]'"):
        Pysteps("sprog")


def test_the_known_methods_are_named():
    with pytest.raises(SettingsError, match=r"one of extrapolation, sprog, .* found 'magic'"):
        Pysteps("magic")


@needs_pysteps
def test_agrees_with_our_extrapolation():
    frames = translation(3, 1.6, -2.3)
    theirs, ours = (m.forecast(frames, 6, **GRID).rain[-1] for m in (Pysteps(), Extrapolation()))
    both = np.isfinite(theirs) & np.isfinite(ours)
    assert both.mean() > 0.7
    assert np.corrcoef(theirs[both], ours[both])[0, 1] > 0.95


@needs_pysteps
@pytest.mark.parametrize(
    "name", [*module.NAMES[:-1], pytest.param("linda", marks=pytest.mark.long)]
)
def test_every_method_gives_rain_and_is_silent(name, capfd):
    frames = translation(4, 1.0, -2.0, size=96)
    made = Pysteps(name).forecast(frames, 3, members=2, seed=1, **GRID)
    assert made.rain.shape == (3, 96, 96)
    assert made.rain.dtype == np.float32
    known = np.isfinite(made.rain)
    assert 0.7 < known.mean() < 1
    assert (made.rain[known] >= 0).all()
    near = np.corrcoef(made.rain[0][known[0]], frames[-1][known[0]])[0, 1]
    assert near > 0.5
    assert (made.members is not None) == (name in ("steps", "linda"))
    if made.members is not None:
        assert made.members.shape == (2, 3, 96, 96)
        assert not np.array_equal(made.members[0], made.members[1], equal_nan=True)
    assert capfd.readouterr() == ("", "")
