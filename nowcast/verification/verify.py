"""Verification: forecasts from many starts, scored on common pixels, with pooled scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError
from nowcast.forecasters.forecaster import Forecaster, frames_read
from nowcast.rain.windows import event_labels
from nowcast.verification.archive import Archive
from nowcast.verification.case import CaseSums
from nowcast.verification.cases import Settings, score_all
from nowcast.verification.pool import DRAWS, LEVEL, add_totals, pool

if TYPE_CHECKING:
    from pathlib import Path

    from distributed import Client


def verify(
    rain: xr.DataArray | Sequence[xr.DataArray],
    forecasters: Mapping[str, Forecaster],
    leads: int,
    *,
    every: int = 1,
    thresholds: Sequence[float] = (0.1, 1.0, 5.0, 10.0),
    scales: Sequence[float] = (1, 5, 20),
    members: int = 0,
    seed: int = 0,
    reference: str | None = "persistence",
    progress: Callable[[int, int], None] | None = None,
    client: Client | None = None,
    kept: Path | None = None,
) -> xr.Dataset:
    """Score forecasters against observed rain, pooled over cases.

    A case is one start: every forecaster gets the frames before it, and its forecast is compared
    with the observed frames. Only one case is in memory at a time.

    - All leads are scored at the same valid times, which forecasts of every lead reach; with
      ``every`` above 1, only leads that are its multiples. When starts are farther apart than the
      last lead, valid times differ by lead, and the attribute ``valid_times`` says so.
    - All forecasters are scored on the same pixels: where the observation and *every* forecast
      are finite. So a forecaster that leaves pixels out (extrapolation does, where air comes from
      outside of the grid) cannot choose the easy ones; ``scored_fraction`` is the rest.
    - An event is a rain rate at or above the threshold. Scores are pooled: counts, errors and the
      sums of FSS, Brier score and CRPS are added over cases, and ratios are taken of the totals.
      So the weight of a case is its rain, not 1 / ``n_cases``.
    - Without an observed event CSI, POD, bias and FSS are NaN, not 0; without a forecast event FAR
      is NaN. ``events`` is the number of observed event pixels.
    - FSS windows lie entirely inside the grid, and pixels that are not scored have no event.
    - Differences to the reference are paired; their intervals are percentiles of a bootstrap over
      events (spells of rain, see `nowcast.rain.windows`) and, within each event, over runs of
      consecutive cases that share frames; NaN with fewer than three such runs.

    Parameters
    ----------
    rain : DataArray (time, y, x), or several
        Rain rate in mm h-1, NaN where missing, with coordinates ``time`` and ``y``, ``x`` in m.
        Several arrays may have different grids, and steps that divide the longest one.
    forecasters : mapping of str to Forecaster
        Methods by their names in tables and plots.
    leads : int
        Number of frames to forecast, of the longest step.
    every : int
        Frames between two starts.
    thresholds : sequence of float
        Rain rates in mm h-1.
    scales : sequence of float
        Sides of the FSS windows in km, rounded to whole pixels, at least one.
    members : int
        Number of members, of methods that have them.
    seed : int
        Seed of the members; each case has its own.
    reference : str, optional
        Method to compare the others with, if it is among the forecasters.
    progress : callable, optional
        Called as ``progress(done, total)`` after each case.
    client, kept
        Cluster, and folder for resuming; see `nowcast.verification.cases.score_all`.

    Returns
    -------
    xarray.Dataset
        ``csi``, ``pod``, ``far``, ``bias``, ``brier``, ``hits``, ``misses``, ``false_alarms``,
        ``correct_negatives`` (forecaster, lead_time, threshold), ``mae``, ``crps`` (forecaster,
        lead_time), ``fss`` (forecaster, lead_time, threshold, scale), ``events`` (lead_time,
        threshold), ``scored_fraction`` (lead_time); with a reference ``csi_difference``,
        ``csi_difference_low`` and ``csi_difference_high``, and the same for ``fss``, ``brier`` and
        ``crps``; and the variables of `nowcast.verification.pool.add_totals`. Attributes are
        ``n_cases`` (starts with at least one scored pixel), ``n_events`` and the settings.

    Raises
    ------
    DataError
        If there is no start, steps do not fit, cells are too oblong, or no pixel could be scored.
    SettingsError
        If there is no forecaster, or a threshold or scale is invalid.
    ShapeError
        If a forecaster returns another shape than (leads, y, x).

    Examples
    --------
    >>> import xarray as xr
    >>> from nowcast.forecasters import Persistence
    >>> time = np.datetime64("2021-03-04T12:00", "ns") + np.arange(6) * np.timedelta64(5, "m")
    >>> where = {"time": time, "y": np.arange(32) * 1000.0, "x": np.arange(32) * 1000.0}
    >>> rain = xr.DataArray(np.ones((6, 32, 32), np.float32), where, ("time", "y", "x"))
    >>> scores = verify(rain, {"persistence": Persistence()}, 2, thresholds=(0.5,), scales=(5,))
    >>> scores["csi"].values.tolist()
    [[[1.0], [1.0]]]
    >>> from pathlib import Path
    >>> from nowcast.plot import plot_scores
    >>> from nowcast.verification import findings, score_table, to_json, write_json
    >>> score_table(scores, threshold=0.5).row_count
    2
    >>> to_json(scores)["forecasters"]["persistence"]["10"]["thresholds"]["0.5"]["csi"]
    1.0
    >>> findings(scores)[0]
    'Too few independent cases for intervals: nothing can be said of who is better.'
    >>> write_json(scores, "scores.json"), plot_scores(scores, Path("scores.png"))
    (None, None)
    """
    if not forecasters:
        raise SettingsError("verify: expected one forecaster at least, found none.")
    if not len(thresholds) or min(thresholds) <= 0:
        raise SettingsError(f"verify: thresholds must be above 0 mm/h, found {thresholds!r}.")
    if leads < 1:
        raise SettingsError(f"verify: expected at least 1 lead, found {leads!r}.")
    if every < 1:
        raise SettingsError(f"verify: every must be at least 1 frame, found {every!r}.")
    common = every < leads or every == 1
    scored_leads = list(range(every, leads + 1, every)) if common else list(range(1, leads + 1))
    arrays = [rain] if isinstance(rain, xr.DataArray) else rain
    archives = Archive.of(
        arrays,
        lambda minutes: max(frames_read(one, minutes) for one in forecasters.values()),
        scored_leads,
        every=every,
        common=common,
        scales=scales,
    )
    settings = Settings(forecasters, tuple(float(t) for t in thresholds), members, seed)
    totals = settings.totals(len(scored_leads))
    cases: list[CaseSums] = []
    where: list[tuple[int, np.datetime64]] = []
    most, example = -1.0, (0, "")
    scored = score_all(archives, settings, totals, client=client, kept=kept, progress=progress)
    for archive, start, case in scored:
        if case.pixels.any():
            cases.append(case)
            where.append((archive.number, archive.time[start]))
            if (amount := float(case.observed_sum.sum())) > most:
                last = archive.time[start - 1].astype("datetime64[s]")
                most, example = amount, (archive.number, str(last))
    if not cases:
        raise DataError(
            f"verify: expected pixels where the observation and the forecasts of all "
            f"({', '.join(forecasters)}) are finite, found none in "
            f"{sum(len(archive.starts) for archive in archives)} cases."
        )
    events = _events(cases, where)
    block = max(archive.cases_sharing_frames for archive in archives)
    compared = reference if reference in forecasters else None
    scores = pool(
        cases,
        forecasters=list(forecasters),
        lead_time=np.asarray(scored_leads) * archives[0].longest_step,
        thresholds=thresholds,
        scales=scales,
        reference=compared,
        events=events,
        block=block,
    )
    add_totals(scores, totals)
    bounds = [str(where[i][1].astype("datetime64[s]")) for i in (0, -1)]
    scores.attrs = {
        "n_cases": len(cases),
        "n_events": int(events.max()) + 1,
        "cases_sharing_frames": block,
        "n_in": max(archive.n_in for archive in archives),
        "n_out": leads,
        "first_start": bounds[0],
        "last_start": bounds[1],
        "example_store": example[0],
        "example_time": example[1],
        "grid_spacing_km": archives[0].spacing_km,
        "fss_window_pixels": archives[0].windows,
        "valid_times": "the same for all leads" if common else "different for each lead",
        "pooling": "counts, errors and FSS sums added over cases, then ratios",
        "pixels": "observation and all forecasts finite",
        "interval": f"{LEVEL:.0%} of {DRAWS} bootstrap samples of events and runs of cases in them",
    }
    if compared is not None:
        scores.attrs["reference"] = compared
    return scores


def _events(
    cases: Sequence[CaseSums], where: Sequence[tuple[int, np.datetime64]]
) -> NDArray[np.int64]:
    """Return the event of each case, from the observed rain."""
    wet = [
        (case.hits[0, :, 0] + case.misses[0, :, 0]).sum() / max(1, case.pixels.sum())
        for case in cases
    ]
    number, time = (np.asarray(column) for column in zip(*where, strict=True))
    return event_labels(number, time, np.asarray(wet))
