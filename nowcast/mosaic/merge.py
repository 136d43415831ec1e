"""The merge of a mosaic: maps of several radars, moved to one time and combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.advection import carry, origins
from nowcast.lagrangian.motion import motion_field

Float = NDArray[np.float32]


class View(NamedTuple):
    """One radar's map, (y, x) float32: rain in mm h-1, NaN is missing, and quality above 0 to 1.

    The quality is NaN where the radar does not reach.
    """

    rain: Float
    quality: Float


def motion_between(earlier: Float, later: Float, seconds: float, spacing: float) -> Float:
    """Return the motion of rain (2, y, x) in cells per second of two maps of one radar.

    Maps are (y, x) in mm h-1, NaN is missing; ``spacing`` is metres between cells.
    """
    frames = np.stack([earlier, later])
    moved = motion_field(frames, spacing_km=spacing / 1000, step_minutes=seconds / 60)
    return np.asarray(moved / np.float32(seconds), np.float32)


def moved(view: View, motion: Float, seconds: float) -> View:
    """Return a view moved along a motion (2, y, x), cells per second, by (negative) seconds.

    Rain from beyond the radar's range is missing; the quality does not move.
    """
    steps = np.float32(seconds)
    return view._replace(rain=carry(view.rain, origins(motion * steps, 1.0)))


def merge(views: Sequence[View], how: str) -> View:
    """Return one map from several; NaN, with quality 0, where no radar has data.

    ``"quality"`` takes the mean of the rain rates weighted by quality, ``"maximum"`` the strongest
    rain, ``"nearest"`` the rain of the best quality. The quality is the best view's.
    """
    rain = np.stack([view.rain for view in views])
    quality = np.stack([view.quality for view in views])
    # Moved rain may have left the radar's range, where there is no quality.
    known = np.isfinite(rain) & np.isfinite(quality)
    rain, quality = np.where(known, rain, np.float32(np.nan)), np.where(known, quality, 0)
    best = quality.max(axis=0)
    if how == "quality":
        total = (np.where(known, rain, np.float32(0)) * quality).sum(axis=0)
        merged = total / np.where(best > 0, quality.sum(axis=0), np.float32(np.nan))
    elif how == "maximum":
        merged = np.fmax.reduce(rain)
    else:
        merged = np.take_along_axis(rain, quality.argmax(axis=0)[np.newaxis], axis=0)[0]
        merged[best == 0] = np.nan
    return View(merged.astype(np.float32, copy=False), best)
