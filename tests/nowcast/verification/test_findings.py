"""Sentences about scores."""

from __future__ import annotations

import numpy as np
import xarray as xr

from nowcast.verification import findings

LEADS = (5, 10, 15, 20)


def scores(
    low: np.ndarray, high: np.ndarray, csi: np.ndarray | None = None, events: int = 9
) -> xr.Dataset:
    """Scores of extrapolation and persistence with intervals (threshold, lead) of the former."""
    dims = ("forecaster", "lead_time", "threshold")
    shape = (2, len(LEADS), low.shape[0])
    values = {}
    for end, data in (("low", low), ("high", high)):
        both = np.zeros(shape)
        both[0] = data.T
        values[f"csi_difference_{end}"] = (dims, both)
    values["csi"] = (dims, np.full(shape, 0.5) if csi is None else csi)
    nothing = np.full(shape, np.nan)
    values |= {"roc_area": (dims, nothing), "crps_difference": (dims[:2], nothing[..., 0])}
    return xr.Dataset(
        values,
        coords={
            "forecaster": ["extrapolation", "persistence"],
            "lead_time": np.array(LEADS) * np.timedelta64(60, "s"),
            "threshold": [0.1, 1.0, 10.0, 30.0][: low.shape[0]],
        },
        attrs={"reference": "persistence", "n_events": events},
    )


def test_leads_are_named_as_runs_and_thresholds_together() -> None:
    low = np.array([[-1, 0.1, 0.1, 0.1]] * 2 + [[-1, -1, -1, -1], [np.nan] * 4])
    high = np.array([[1, 0.2, 0.2, 0.2]] * 2 + [[-0.5, 1, 1, 1], [np.nan] * 4])
    assert findings(scores(low, high)) == [
        "extrapolation against persistence: CSI at 0.1 and 1 mm/h: better from +10 to +20 min, "
        "else no difference; at 10 mm/h: worse at +5 min, else no difference; at 30 mm/h: too few "
        "events."
    ]


def test_better_and_worse_need_an_interval_without_zero() -> None:
    low = np.array([[-0.1, -0.1, 0.0, -0.01]])
    assert findings(scores(low, low + 0.2)) == [
        "extrapolation against persistence: CSI at 0.1 mm/h: no difference."
    ]


def test_few_events_are_said() -> None:
    low = np.array([[0.1] * 4])
    assert findings(scores(low, low + 0.1, events=2))[1:] == [
        "The intervals are from 2 events: other weather may give another order."
    ]
    assert findings(scores(low * np.nan, low * np.nan)) == [
        "Too few independent cases for intervals: nothing can be said of who is better."
    ]


def test_extrapolation_below_persistence_is_a_fault_of_the_motion() -> None:
    low = np.array([[0.1] * 4] * 2)
    csi = np.full((2, 4, 2), 0.5)
    csi[0, 1:3, 1] = 0.4
    first = findings(scores(low, low, csi))[0]
    assert first == (
        "Fault of the motion: extrapolation is below persistence at 1 mm/h from +10 to +15 min; "
        "look at the motion before anything that builds on it."
    )
