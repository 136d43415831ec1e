"""The peer's forecasters: pysteps' Lucas-Kanade extrapolation, S-PROG and STEPS."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.bench.skill.forecast import Forecast

#: Threshold in mm h-1 and value in dB of dry pixels of the images that pysteps reads.
RAIN_THRESHOLD, DRY_DECIBEL = 0.1, -15.0
#: Members of the STEPS ensemble.
MEMBERS = 20

Array = NDArray[np.float32]


def version() -> str:
    """Version of pysteps, by which cached forecasts are told apart."""
    return importlib.metadata.version("pysteps")


def extrapolation(frames: Array, steps: list[int], step: int, spacing: float) -> Forecast:
    """Carry the last frame along the Lucas-Kanade motion of the last three."""
    _, motion = _motion(frames)
    rain = _quietly(_pysteps("nowcasts").get_method("extrapolation"), frames[-1], motion, steps[-1])
    return Forecast(rain=_at(rain, steps))


def sprog(frames: Array, steps: list[int], step: int, spacing: float) -> Forecast:
    """Run S-PROG with six cascade levels and matching of the distribution, as pysteps has it."""
    decibel, motion = _motion(frames)
    rain = _quietly(
        _pysteps("nowcasts").get_method("sprog"),
        decibel[-3:],
        motion,
        steps[-1],
        precip_thr=10 * np.log10(RAIN_THRESHOLD),
        n_cascade_levels=6,
    )
    return Forecast(rain=_at(_from_decibel(rain), steps))


def steps(frames: Array, steps: list[int], step: int, spacing: float) -> Forecast:
    """Run STEPS with 20 members and pysteps' own settings otherwise."""
    decibel, motion = _motion(frames)
    members = _quietly(
        _pysteps("nowcasts").get_method("steps"),
        decibel[-3:],
        motion,
        steps[-1],
        n_ens_members=MEMBERS,
        n_cascade_levels=6,
        precip_thr=10 * np.log10(RAIN_THRESHOLD),
        kmperpixel=spacing,
        timestep=step,
        seed=0,
    )
    members = _from_decibel(members)[:, [k - 1 for k in steps]].astype(np.float32)
    return Forecast(rain=members.mean(0), members=members)


PEERS = {"pysteps:extrapolation": extrapolation, "pysteps:sprog": sprog, "pysteps:steps": steps}


def _motion(frames: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frames in dB, and the motion by Lucas-Kanade of the last three."""
    decibel = np.full(frames.shape, DRY_DECIBEL)
    wet = np.nan_to_num(frames) >= RAIN_THRESHOLD
    decibel[wet] = 10 * np.log10(frames[wet])
    return decibel, _quietly(_pysteps("motion").get_method("LK"), decibel[-3:], verbose=False)


def _from_decibel(decibel: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rain rate in mm h-1; what is below the threshold is dry, NaN stays."""
    rain = np.asarray(10 ** (decibel / 10))
    rain[rain < RAIN_THRESHOLD] = 0
    return rain


def _at(rain: NDArray[np.float64], steps: list[int]) -> Array:
    return np.asarray(rain[[k - 1 for k in steps]], np.float32)


@functools.cache
def _pysteps(name: str) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module(f"pysteps.{name}")


def _quietly(function: Any, *arguments: Any, **named: Any) -> Any:
    """Call a function whose messages on the terminal are not wanted."""
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        return function(*arguments, **named)
