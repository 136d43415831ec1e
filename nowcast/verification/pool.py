"""Scores from the sums of many cases: sums first, ratios last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nowcast.verification.bootstrap import block_weights, csi_difference_interval
from nowcast.verification.case import CaseSums

if TYPE_CHECKING:
    import xarray as xr

#: Bootstrap samples of an interval, and its probability.
DRAWS = 1000
LEVEL = 0.95
#: With fewer runs of cases than this to draw from, an interval would look narrow and mean nothing.
FEWEST_BLOCKS = 3

CELL = ("forecaster", "lead_time", "threshold")


def pool(
    cases: Sequence[CaseSums],
    *,
    forecasters: Sequence[str],
    lead_time: NDArray[np.timedelta64],
    thresholds: Sequence[float],
    scales: Sequence[float],
    grid_pixels: int,
    reference: str | None = None,
    block: int = 1,
) -> xr.Dataset:
    """Pooled scores of several forecasters over several cases.

    Parameters
    ----------
    cases : sequence of CaseSums
        In order of time, at least one.
    forecasters, lead_time, thresholds, scales
        What the axes of the sums stand for; thresholds in mm h-1, scales in km.
    grid_pixels : int
        Number of pixels of the grid, of which a fraction was scored.
    reference : str, optional
        Method that the others' CSI is compared with.
    block : int
        Number of consecutive cases that are not independent, see `block_weights`.

    Returns
    -------
    xarray.Dataset
        As `nowcast.verification.verify` describes it, without its attributes.
    """
    import xarray as xr

    def cell(values: NDArray[np.generic], long_name: str) -> xr.DataArray:
        return xr.DataArray(values, dims=CELL, attrs={"long_name": long_name, "units": "1"})

    pixels = np.sum([case.pixels for case in cases], axis=0)
    case_hits, case_false_alarms, case_misses = (
        np.stack([getattr(case, name) for case in cases])
        for name in ("hits", "false_alarms", "misses")
    )
    hits, misses = cell(case_hits.sum(0), "hits"), cell(case_misses.sum(0), "misses")
    false_alarms = cell(case_false_alarms.sum(0), "false alarms")
    correct = pixels[:, np.newaxis] - hits - misses - false_alarms
    scores = xr.Dataset(
        {
            "hits": hits,
            "misses": misses,
            "false_alarms": false_alarms,
            "correct_negatives": correct.assign_attrs(long_name="correct negatives", units="1"),
        },
        coords={
            "forecaster": list(forecasters),
            "lead_time": ("lead_time", lead_time, {"standard_name": "forecast_period"}),
            "threshold": ("threshold", np.asarray(thresholds, float), {"units": "mm h-1"}),
            "scale": ("scale", np.asarray(scales, float), {"units": "km"}),
        },
    )
    _add_ratios(scores)

    events = (hits + misses).isel(forecaster=0)
    scores["events"] = events.assign_attrs(long_name="observed events (pixels)", units="1")
    scores["scored_fraction"] = (
        "lead_time",
        pixels / (grid_pixels * len(cases)),
        {"long_name": "fraction of the grid's pixels that was scored", "units": "1"},
    )
    absolute_error = np.sum([case.absolute_error for case in cases], axis=0)
    scores["mae"] = (
        CELL[:2],
        _ratio(absolute_error, pixels),
        {"long_name": "mean absolute error", "units": "mm h-1"},
    )
    forecast_squares, observed_squares, difference = np.moveaxis(
        np.sum([case.fractions for case in cases], axis=0), -1, 0
    )
    scores["fss"] = (
        (*CELL, "scale"),
        1 - _ratio(difference, forecast_squares + observed_squares),
        {"long_name": "fractions skill score", "units": "1"},
    )
    # Without an event there is nothing to hit: no score rather than a bad one.
    for name in ("csi", "pod", "bias", "fss"):
        scores[name] = scores[name].where(events > 0)

    if reference is not None:
        csi = scores["csi"].to_numpy()
        at = list(forecasters).index(reference)
        scores["csi_difference"] = cell(csi - csi[at], f"CSI minus that of {reference}")
        low, high = np.full((2, *csi.shape), np.nan)
        if len(cases) >= FEWEST_BLOCKS * block:
            low, high = csi_difference_interval(
                case_hits,
                case_hits + case_misses + case_false_alarms,
                at,
                block_weights(len(cases), block, DRAWS),
                LEVEL,
            )
        scores["csi_difference_low"] = cell(low, f"lower end of the {LEVEL:.0%} interval")
        scores["csi_difference_high"] = cell(high, f"upper end of the {LEVEL:.0%} interval")
    return scores


def _add_ratios(scores: xr.Dataset) -> None:
    """Add CSI, POD, FAR and frequency bias of the pooled counts, by the ``scores`` library."""
    from scores.categorical import BasicContingencyManager

    hits, misses = scores["hits"], scores["misses"]
    false_alarms, correct = scores["false_alarms"], scores["correct_negatives"]
    table = BasicContingencyManager(
        {
            "tp_count": hits,
            "tn_count": correct,
            "fp_count": false_alarms,
            "fn_count": misses,
            "total_count": hits + misses + false_alarms + correct,
        }
    )
    for name, long_name, ratio in (
        ("csi", "critical success index", table.critical_success_index()),
        ("pod", "probability of detection", table.probability_of_detection()),
        ("far", "false alarm ratio", table.false_alarm_ratio()),
        ("bias", "frequency bias", table.frequency_bias()),
    ):
        scores[name] = ratio.where(np.isfinite(ratio))
        scores[name].attrs = {"long_name": long_name, "units": "1"}


def _ratio(numerator: NDArray[np.number], denominator: NDArray[np.number]) -> NDArray[np.float64]:
    """Quotient, NaN where the denominator is zero."""
    numerator = np.asarray(numerator, float)
    undefined = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)
