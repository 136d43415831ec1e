"""Schedule: forecasts to make, and those of their frames to score: the same times for all leads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError

Schedule = tuple[NDArray[np.intp], NDArray[np.bool_]]


def schedule(
    time: NDArray[np.datetime64],
    n_in: int,
    leads: Sequence[int],
    step: np.timedelta64,
    *,
    every: int = 1,
    tolerance: float = 0.1,
) -> Schedule:
    """Choose starts, and the valid times at which every lead is scored.

    Skill depends on the weather of the time that is forecast. Were each lead scored at other
    times, a curve of skill by lead would show that too; so a time counts only when forecasts of
    all leads reach it. Starts at the end of a run of frames are scored at their short leads only.

    - ``time`` (time,): of the frames, increasing.
    - ``n_in``: frames that go in.
    - ``leads``: leads that are scored, in frames, increasing.
    - ``step``: of the frames.
    - ``every``: frames between two starts. It has to divide all leads for common valid times.
    - ``tolerance``: see `valid_starts`.
    - returns ``starts`` (start,): index of the first frame to be forecast.
    - returns ``scored`` (start, lead): whether the start is scored at each lead; no start without
      any.
    - raises SettingsError if there is no lead, or ``every`` does not divide them all.

    Examples
    --------
    >>> minutes = 5 * np.arange(8)
    >>> time = np.datetime64("2010-08-26T00:00") + minutes * np.timedelta64(1, "m")
    >>> starts, scored = schedule(time, 2, [1, 2, 3], np.timedelta64(5, "m"))
    >>> starts
    array([2, 3, 4, 5, 6, 7])
    >>> scored.astype(int)
    array([[0, 0, 1],
           [0, 1, 1],
           [1, 1, 1],
           [1, 1, 1],
           [1, 1, 0],
           [1, 0, 0]])
    """
    if not len(leads) or min(leads) < 1:
        raise SettingsError(f"schedule: expected leads of at least 1 frame, found {leads!r}.")
    if every < 1 or any(lead % every for lead in leads):
        raise SettingsError(
            f"schedule: expected a number of frames between starts that divides the leads "
            f"{list(leads)}, found {every!r}."
        )
    ahead = np.asarray(leads)
    chosen = np.zeros(len(time), bool)
    run_of = np.zeros(len(time), np.intp)
    for number, frames in enumerate(_runs(time, n_in, step, tolerance)):
        chosen[frames[::every]] = True
        run_of[frames] = number + 1
    # A valid time is common when each lead reaches it from a start of its own run.
    common = np.ones(len(time), bool)
    for lead in ahead:
        before = np.arange(len(time)) - lead + 1
        inside = before >= 0
        reached = np.zeros(len(time), bool)
        reached[inside] = chosen[before[inside]] & (
            run_of[before[inside]] == run_of[np.flatnonzero(inside)]
        )
        common &= reached & (run_of > 0)
    starts = np.flatnonzero(chosen)
    valid = starts[:, np.newaxis] + ahead - 1
    scored = np.zeros(valid.shape, bool)
    inside = valid < len(time)
    scored[inside] = common[valid[inside]]
    same_run = np.zeros(valid.shape, bool)
    same_run[inside] = (
        run_of[valid[inside]] == np.broadcast_to(run_of[starts][:, np.newaxis], valid.shape)[inside]
    )
    scored &= same_run
    used = scored.any(1)
    return starts[used], scored[used]


def own_times(
    time: NDArray[np.datetime64],
    n_in: int,
    leads: Sequence[int],
    step: np.timedelta64,
    *,
    every: int,
    tolerance: float = 0.1,
) -> Schedule:
    """Choose starts that are each scored at all leads, so that valid times differ by lead.

    What is left when starts are so far apart that no valid time is common; parameters and result
    as of `schedule`.
    """
    starts = valid_starts(time, n_in, max(leads), step, stride=every, tolerance=tolerance)
    return starts, np.ones((len(starts), len(leads)), bool)


def _runs(
    time: NDArray[np.datetime64], n_in: int, step: np.timedelta64, tolerance: float
) -> list[NDArray[np.intp]]:
    """Frames with ``n_in`` before them, in runs without a gap."""
    starts = valid_starts(time, n_in, 1, step, tolerance=tolerance)
    return np.split(starts, np.flatnonzero(np.diff(starts) > 1) + 1) if len(starts) else []


def valid_starts(
    time: NDArray[np.datetime64],
    n_in: int,
    n_out: int,
    step: np.timedelta64,
    *,
    stride: int = 1,
    tolerance: float = 0.1,
) -> NDArray[np.intp]:
    """Find the frames at which a forecast can start and be verified.

    A start ``s`` is the first frame to be forecast: ``s - n_in ... s - 1`` go in and
    ``s ... s + n_out - 1`` are compared. All of them have to follow each other by ``step``,
    but for the seconds that scans start early or late; a gap is never bridged.

    Parameters
    ----------
    time : ndarray, (time,) datetime64
        Times of the frames, increasing.
    n_in, n_out : int
        Number of frames that go in and that are forecast.
    step : timedelta64
        Time step of the frames.
    stride : int
        Least distance between two starts in frames. ``n_in + n_out`` makes cases that share no
        frame; 1 takes every start there is.
    tolerance : float
        Largest difference of two frames' distance from ``step``, as a fraction of it; up to 0.5.

    Returns
    -------
    ndarray, (starts,) intp
        Indices, increasing; empty when no run of frames is long enough.

    Raises
    ------
    DataError
        If the times do not increase.
    SettingsError
        If ``n_in``, ``n_out``, ``step`` or ``stride`` is not positive, or ``tolerance`` is not from
        0 to 0.5.

    Examples
    --------
    >>> minutes = np.array([0, 5, 10, 15, 25, 30, 35, 40])
    >>> time = np.datetime64("2010-08-26T00:00") + minutes * np.timedelta64(1, "m")
    >>> valid_starts(time, n_in=2, n_out=1, step=np.timedelta64(5, "m"))
    array([2, 3, 6, 7])
    """
    for name, value in (("n_in", n_in), ("n_out", n_out), ("stride", stride)):
        if value < 1:
            raise SettingsError(f"valid_starts: {name} must be at least 1, found {value!r}.")
    if not step > np.timedelta64(0, "ns"):
        raise SettingsError(f"valid_starts: step must be positive, found {step!r}.")
    if not 0 <= tolerance <= 0.5:
        raise SettingsError(
            f"valid_starts: tolerance must be from 0 to 0.5 of a step, found {tolerance!r}."
        )
    steps = np.diff(np.asarray(time)).astype("timedelta64[ns]").astype(np.int64)
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0)) + 1
        raise DataError(
            f"valid_starts: expected times that increase, found {time[at]} after {time[at - 1]} "
            f"at frame {at}: sort the frames and drop repeated ones."
        )
    wanted = int(step.astype("timedelta64[ns]").astype(np.int64))
    follows = np.abs(steps - wanted) <= tolerance * wanted
    # broken[i] counts the gaps before frame i: the same number means a run without one.
    broken = np.concatenate([[0], np.cumsum(~follows)])
    frames = n_in + n_out
    if len(broken) < frames:
        return np.empty(0, np.intp)
    first = np.flatnonzero(broken[frames - 1 :] == broken[: len(broken) - frames + 1])
    starts: list[int] = []
    for start in (first + n_in).tolist():
        if not starts or start - starts[-1] >= stride:
            starts.append(start)
    return np.array(starts, np.intp)
