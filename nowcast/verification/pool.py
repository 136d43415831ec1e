"""Scores from the sums of many cases: sums first, ratios last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nowcast.verification.bootstrap import bootstrap_weights, difference_interval, independent_runs
from nowcast.verification.case import BANDS, CaseSums, Totals
from nowcast.verification.probability import brier_parts, crps, reliability_curve, roc_curve

#: Number of bootstrap samples for an interval, and the interval's probability.
DRAWS = 1000
LEVEL = 0.95
#: Least number of runs of cases; an interval from fewer would be narrow and mean nothing.
FEWEST_BLOCKS = 3
#: Bins of probability in reliability curves.
RELIABILITY_BINS = 10

CELL = ("forecaster", "lead_time", "threshold")


def pool(
    cases: Sequence[CaseSums],
    *,
    forecasters: Sequence[str],
    lead_time: NDArray[np.timedelta64],
    thresholds: Sequence[float],
    scales: Sequence[float],
    reference: str | None = None,
    events: Sequence[int] | NDArray[np.integer] | None = None,
    block: int = 1,
) -> xr.Dataset:
    """Return pooled scores of several forecasters over several cases.

    - ``cases``: in order of time, at least one.
    - ``forecasters``, ``lead_time``, ``thresholds``, ``scales``: coordinates of the sums' axes;
      thresholds in mm h-1, scales in km.
    - ``reference``: forecaster to compare the others with.
    - ``events``: event of each case, see `nowcast.rain.windows.event_labels`; one by default.
    - ``block``: number of consecutive cases that are not independent, see `bootstrap_weights`.
    - returns: the result of `nowcast.verification.verify`, without its attributes.
    """

    def cell(values: NDArray[np.generic], long_name: str) -> xr.DataArray:
        return xr.DataArray(values, dims=CELL, attrs={"long_name": long_name, "units": "1"})

    stacked = {
        name: np.stack([getattr(case, name) for case in cases])
        for name in CaseSums.__dataclass_fields__
    }
    total = {name: values.sum(0) for name, values in stacked.items()}
    pixels = total["pixels"]
    hits, misses = cell(total["hits"], "hits"), cell(total["misses"], "misses")
    false_alarms = cell(total["false_alarms"], "false alarms")
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

    observed = (hits + misses).isel(forecaster=0)
    scores["events"] = observed.assign_attrs(long_name="observed events (pixels)", units="1")
    part, mm_h = _ratio(pixels, total["grid_pixels"]), "mm h-1"
    _put(
        scores,
        "scored_fraction",
        ("lead_time",),
        part,
        "fraction of the grid's pixels that was scored",
    )
    mae = _ratio(total["absolute_error"], pixels)
    _put(scores, "mae", CELL[:2], mae, "mean absolute error", mm_h)
    forecast_squares, observed_squares, difference = np.moveaxis(total["fractions"], -1, 0)
    fss = 1 - _ratio(difference, forecast_squares + observed_squares)
    _put(scores, "fss", (*CELL, "scale"), fss, "fractions skill score")
    brier = _ratio(total["brier"], pixels[:, np.newaxis])
    _put(scores, "brier", CELL, brier, "Brier score; of yes and no, the wrong share")
    ranked = np.array([[crps(sums) for sums in of_method] for of_method in total["crps"]])
    _put(scores, "crps", CELL[:2], ranked, "continuous ranked probability score", mm_h)
    # Without an event there is nothing to hit: the score is missing, not bad.
    for name in ("csi", "pod", "bias", "fss"):
        scores[name] = scores[name].where(observed > 0)
    if reference is not None:
        labels = np.zeros(len(cases), int) if events is None else np.asarray(events)
        _add_differences(scores, stacked, reference, labels, block)
    return scores


def add_totals(scores: xr.Dataset, totals: Totals) -> None:
    """Add reliability, ROC area, rank histograms and spectra to pooled scores, in place.

    Adds ``brier_reliability``, ``brier_resolution``, ``brier_uncertainty``, ``roc_area``
    (forecaster, lead_time, threshold); ``forecast_probability``, ``observed_frequency``,
    ``forecasts`` (..., probability_bin); ``rank_histogram`` (forecaster, lead_time, rank), if there
    are members; ``power_ratio`` (forecaster, lead_time, wavelength): forecast power divided by the
    observed. NaN for forecasters without probabilities or members.
    """
    shape = totals.probability.shape[:3]
    parts = np.full((4, *shape), np.nan)
    curves = np.full((3, *shape, RELIABILITY_BINS), np.nan)
    for cell in np.ndindex(*shape):
        sums = totals.probability[cell]
        if not sums.any():
            continue
        brier = brier_parts(sums, RELIABILITY_BINS)
        of_cell = (brier.reliability, brier.resolution, brier.uncertainty, roc_curve(sums)[2])
        parts[(slice(None), *cell)] = of_cell
        curves[(slice(None), *cell)] = reliability_curve(sums, RELIABILITY_BINS)
    of_brier = ("brier_reliability", "brier_resolution", "brier_uncertainty", "roc_area")
    for name, values in zip(of_brier, parts, strict=True):
        _put(scores, name, CELL, values, name.replace("_", " "))
    of_curve = ("forecast_probability", "observed_frequency", "forecasts")
    for name, values in zip(of_curve, curves, strict=True):
        _put(scores, name, (*CELL, "probability_bin"), values, name.replace("_", " "))
    members = max((counts.shape[1] for counts in totals.ranks if counts is not None), default=0)
    if members:
        ranks = np.full((*shape[:2], members), np.nan)
        for m, counts in enumerate(totals.ranks):
            if counts is not None and counts.shape[1] == members:
                ranks[m] = _ratio(counts, counts.sum(1, keepdims=True))
        below = "how often so many members were below what was observed"
        _put(scores, "rank_histogram", (*CELL[:2], "rank"), ranks, below)
    power = _ratio(totals.power, np.broadcast_to(totals.observed_power, totals.power.shape))
    over = "power of the forecast over that observed, in dB rain"
    _put(scores, "power_ratio", (*CELL[:2], "wavelength"), power, over)
    middle = {"long_name": "middle of an octave of wavelengths", "units": "km"}
    wavelength = np.sqrt(np.multiply(BANDS[1:], BANDS[:-1]))
    scores.coords["wavelength"] = "wavelength", wavelength, middle


def _put(
    scores: xr.Dataset, name: str, dims: tuple[str, ...], values: NDArray[np.generic],
    long_name: str, units: str = "1",
) -> None:  # fmt: skip
    """Add a score with its attributes."""
    scores[name] = dims, values, {"long_name": long_name, "units": units}


def _add_differences(
    scores: xr.Dataset,
    stacked: dict[str, NDArray[np.number]],
    reference: str,
    events: NDArray[np.integer],
    block: int,
) -> None:
    """Add differences to the reference and their intervals: CSI, FSS, Brier score and CRPS."""
    at = scores["forecaster"].to_numpy().tolist().index(reference)
    squares = stacked["fractions"]
    pixels = stacked["pixels"][:, np.newaxis]
    ensembles, brier = stacked["crps"], stacked["brier"]
    # The quotient is 1 - FSS, so its difference has the opposite sign.
    quotients = {
        "csi": (1, stacked["hits"], stacked["hits"] + stacked["misses"] + stacked["false_alarms"]),
        "fss": (-1, squares[..., 2], squares[..., 0] + squares[..., 1]),
        "brier": (1, brier, np.broadcast_to(pixels[..., np.newaxis], brier.shape)),
        "crps": (1, ensembles[..., 1] - ensembles[..., 2] / 2, ensembles[..., 0]),
    }
    enough = independent_runs(events, block) >= FEWEST_BLOCKS
    weights = bootstrap_weights(events, block, DRAWS) if enough else None
    for name, (sign, above, below) in quotients.items():
        values = scores[name]
        ends = np.full((2, *values.shape), np.nan)
        if weights is not None:
            ends = np.sort(sign * difference_interval(above, below, at, weights, LEVEL), axis=0)
        difference = values - values.isel(forecaster=at, drop=True)
        known = difference.notnull().to_numpy()
        parts: tuple[tuple[str, NDArray[np.float64], str], ...] = (
            ("", difference.to_numpy(), f"{name.upper()} minus that of {reference}"),
            ("_low", np.where(known, ends[0], np.nan), f"lower end of the {LEVEL:.0%} interval"),
            ("_high", np.where(known, ends[1], np.nan), f"upper end of the {LEVEL:.0%} interval"),
        )
        for suffix, data, text in parts:
            attributes = {"long_name": text, "units": values.attrs["units"]}
            scores[f"{name}_difference{suffix}"] = values.dims, data, attributes


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
    """Quotient; NaN where the denominator is zero."""
    numerator = np.asarray(numerator, float)
    undefined = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)
