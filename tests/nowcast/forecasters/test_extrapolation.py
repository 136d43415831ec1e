"""Tests of extrapolation along optical flow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from daskdl.errors import ShapeError
from tests.nowcast.fields import translation
from tests.nowcast.methods import extrapolation, persistence


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


def csi(forecast: np.ndarray, observed: np.ndarray, pixels: np.ndarray) -> float:
    f, o = (forecast >= 1) & pixels, (observed >= 1) & pixels
    return float((f & o).sum() / (f | o).sum())


@pytest.mark.slow
def test_moving_storms_are_forecast_where_they_will_be() -> None:
    frames = translation(9, 1.6, -2.3)
    forecast = extrapolation(6)(frames[:3])
    stay = persistence(6)(frames[:3])
    pixels = np.isfinite(forecast[-1])
    assert csi(forecast[-1], frames[-1], pixels) > 0.85
    assert csi(stay[-1], frames[-1], pixels) < 0.5


def test_one_frame_has_no_motion() -> None:
    with pytest.raises(ShapeError, match=r"extrapolation: .*time >= 2.*found \(1, 32, 32\)"):
        extrapolation(2)(np.zeros((1, 32, 32), np.float32))


@pytest.mark.slow
def test_beats_persistence_on_real_rain_at_30_minutes(radar_dir: Path) -> None:
    hits = np.zeros((2, 3))
    for first in (10, 40, 70):
        frames = knmi_frames(radar_dir, first, 9)
        moved, still = (kind(6)(frames[:3])[-1] for kind in (extrapolation, persistence))
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
