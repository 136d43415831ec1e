"""Verification: forecasts from many starts, each forecaster on the same pixels, scores pooled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError, ShapeError
from nowcast.forecasters.forecaster import FieldForecaster
from nowcast.verification.case import CaseSums, score_case
from nowcast.verification.pool import DRAWS, LEVEL, pool
from nowcast.verification.starts import valid_starts

if TYPE_CHECKING:
    import xarray as xr


def verify(
    rain: xr.DataArray,
    starts: Sequence[int] | NDArray[np.integer],
    forecasters: Mapping[str, FieldForecaster],
    n_in: int,
    n_out: int,
    *,
    thresholds: Sequence[float] = (0.1, 1.0, 5.0, 10.0),
    scales: Sequence[float] = (1, 5, 20),
    reference: str | None = "persistence",
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Score forecasters against observed rain, pooled over cases.

    A case is one start: every forecaster gets the ``n_in`` frames before it, and its ``n_out``
    frames are compared with those observed. Only one case is in memory at a time.

    - All forecasters are scored on the same pixels: where the observation and *every* forecast
      are finite. A forecaster that leaves pixels out (extrapolation does, where air comes in from
      outside of the grid) so cannot choose the easy ones; ``scored_fraction`` says what is left.
    - An event is a rain rate at or above the threshold. Scores are pooled: counts, absolute errors
      and the two sums of the FSS are added over cases, and ratios are taken of the totals, so that
      a case weighs by its rain and not by being one of ``n_cases``.
    - Without an observed event CSI, POD, bias and FSS are NaN, not 0; without a forecast event FAR
      is. ``events`` has the number of observed event pixels.
    - FSS windows lie wholly inside of the grid, and pixels that are not scored hold no event.
    - The interval of the CSI difference to the reference is a percentile bootstrap over cases, in
      runs of as many consecutive cases as share frames; NaN with fewer than three such runs.

    Parameters
    ----------
    rain : DataArray, (time, y, x)
        Rain rate in mm h-1, NaN where missing, with coordinates ``time`` and ``y``, ``x`` in m.
    starts : sequence of int
        Index of the first forecast frame of each case, see `valid_starts`.
    forecasters : mapping of str to callable
        Methods by the name under which they are shown.
    n_in, n_out : int
        Number of frames that go in and that are compared.
    thresholds : sequence of float
        Rain rates in mm h-1.
    scales : sequence of float
        Sides of the FSS windows in km, rounded to whole pixels, at least one.
    reference : str, optional
        Method that the others' CSI is compared with, if it is among the forecasters.
    progress : callable, optional
        Called as ``progress(done, total)`` after each case.

    Returns
    -------
    xarray.Dataset
        ``csi``, ``pod``, ``far``, ``bias``, ``hits``, ``misses``, ``false_alarms``,
        ``correct_negatives`` (forecaster, lead_time, threshold), ``mae`` (forecaster, lead_time),
        ``fss`` (forecaster, lead_time, threshold, scale), ``events`` (lead_time, threshold),
        ``scored_fraction`` (lead_time), and with a reference ``csi_difference``,
        ``csi_difference_low`` and ``csi_difference_high`` (forecaster, lead_time, threshold). The
        attributes hold ``n_cases`` (starts with at least one scored pixel) and the settings.

    Raises
    ------
    DataError
        If there is no start, if frames around a start are not consecutive, if the grid is not
        square-meshed, or if no pixel could be scored.
    SettingsError
        If there is no forecaster, or a threshold or scale makes no sense.
    ShapeError
        If a forecaster answers with another shape than (n_out, y, x).
    """
    if not forecasters:
        raise SettingsError("verify: expected one forecaster at least, found none.")
    if not len(thresholds) or min(thresholds) <= 0:
        raise SettingsError(f"verify: thresholds must be above 0 mm/h, found {thresholds!r}.")
    starts = np.unique(np.asarray(starts)).astype(np.intp)
    step = _check_starts(rain["time"].to_numpy(), starts, n_in, n_out)
    spacing = _grid_spacing(rain)
    windows = _windows(scales, spacing, rain.shape[1:])

    cases: list[CaseSums] = []
    for done, start in enumerate(starts.tolist(), start=1):
        frames = rain.isel(time=slice(start - n_in, start + n_out)).to_numpy()
        frames = frames.astype(np.float32, copy=False)
        forecasts = {
            name: _forecast(name, forecaster, frames[:n_in], n_out)
            for name, forecaster in forecasters.items()
        }
        case = score_case(frames[n_in:], forecasts, thresholds, windows)
        if case.pixels.any():
            cases.append(case)
        if progress is not None:
            progress(done, len(starts))
    if not cases:
        raise DataError(
            "verify: expected pixels at which the observation and the forecasts of all "
            f"({', '.join(forecasters)}) are finite, found none in {len(starts)} cases."
        )

    block = _overlap(starts, n_in + n_out)
    scores = pool(
        cases,
        forecasters=list(forecasters),
        lead_time=np.arange(1, n_out + 1) * step,
        thresholds=thresholds,
        scales=scales,
        grid_pixels=rain.shape[1] * rain.shape[2],
        reference=reference if reference in forecasters else None,
        block=block,
    )
    scores.attrs = {
        "n_cases": len(cases),
        "cases_sharing_frames": block,
        "n_in": n_in,
        "n_out": n_out,
        "first_start": str(rain["time"].to_numpy()[starts[0]].astype("datetime64[s]")),
        "last_start": str(rain["time"].to_numpy()[starts[-1]].astype("datetime64[s]")),
        "grid_spacing_km": spacing / 1000,
        "fss_window_pixels": windows,
        "pooling": "counts, errors and FSS sums added over cases, then ratios",
        "pixels": "observation and all forecasts finite",
        "interval": f"{LEVEL:.0%} of {DRAWS} block bootstrap samples of cases",
    }
    return scores


def _check_starts(
    time: NDArray[np.datetime64], starts: NDArray[np.integer], n_in: int, n_out: int
) -> np.timedelta64:
    """Return the time step in ns; raise DataError when a case is not a run of equal steps."""
    if not len(starts) or len(time) < 2:
        raise DataError(
            f"verify: expected {n_in} + {n_out} consecutive frames at least once, found no such "
            f"start in {len(time)} frames: take shorter forecasts or more data."
        )
    steps = np.diff(time).astype("timedelta64[ns]").astype(np.int64)
    # Scans start some seconds early or late: the step is a whole number of seconds or minutes.
    second = 1_000_000_000
    unit = 60 * second if np.median(steps) >= 60 * second else second
    step = np.timedelta64(max(unit, round(float(np.median(steps)) / unit) * unit), "ns")
    wrong = np.setdiff1d(starts, valid_starts(time, n_in, n_out, step, tolerance=0.5))
    if len(wrong):
        start = int(wrong[0])
        when = str(time[start].astype("datetime64[s]")) if 0 <= start < len(time) else "outside"
        raise DataError(
            f"verify: expected {n_in} frames before and {n_out} from each start on, "
            f"{step / np.timedelta64(60, 's'):g} min apart, found a gap or an end around start "
            f"{start} ({when}): take the starts from valid_starts."
        )
    return step


def _grid_spacing(rain: xr.DataArray) -> float:
    """Spacing of the grid in m; DataError unless it is the same along y and x."""
    if rain.dims != ("time", "y", "x") or "x" not in rain.coords or "y" not in rain.coords:
        raise DataError(
            "verify: expected rain (time, y, x) with coordinates y and x in m, found dimensions "
            f"{rain.dims} with coordinates {tuple(rain.coords)}."
        )
    dy, dx = (float(np.abs(np.diff(rain[name].to_numpy())).mean()) for name in ("y", "x"))
    if not abs(dy - dx) <= 0.05 * dx:
        raise DataError(f"verify: expected a square mesh, found {dy:g} m by {dx:g} m.")
    return dx


def _windows(scales: Sequence[float], spacing: float, shape: Sequence[int]) -> list[int]:
    """Sides of the FSS windows in pixels."""
    windows = [max(1, round(scale * 1000 / spacing)) for scale in scales]
    largest = min(shape) * spacing / 1000
    for scale, window in zip(scales, windows, strict=True):
        if not (scale > 0 and window <= min(shape)):
            raise SettingsError(
                f"verify: scales must be above 0 and at most the {largest:g} km of the grid, "
                f"found {scale:g} km."
            )
    return windows


def _forecast(
    name: str, forecaster: FieldForecaster, frames: NDArray[np.float32], n_out: int
) -> NDArray[np.float32]:
    """Ask one forecaster, with a copy of the frames that it may change, and check its answer."""
    forecast = np.asarray(forecaster(frames.copy()))
    expected = (n_out, *frames.shape[1:])
    if forecast.shape != expected:
        raise ShapeError(
            f"verify: expected forecasts of shape {expected} from {name}, found {forecast.shape}."
        )
    return forecast


def _overlap(starts: NDArray[np.integer], frames: int) -> int:
    """Largest number of consecutive cases that share frames with the first of them."""
    return int((np.searchsorted(starts, starts + frames) - np.arange(len(starts))).max())
