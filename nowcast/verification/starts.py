"""Starts: times at which forecasts can begin, in runs of frames without a gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError


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
