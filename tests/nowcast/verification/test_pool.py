"""Tests of pooling the sums of cases."""

from __future__ import annotations

import numpy as np
import xarray as xr

from nowcast.forecasters import Forecast
from nowcast.verification.case import CaseSums, score_case
from nowcast.verification.pool import pool

MINUTE = np.timedelta64(60, "s")


def cases(count: int) -> tuple[np.ndarray, list[CaseSums]]:
    """Fields (case, observed and two forecasters, lead, y, x) and their sums."""
    rain = np.random.default_rng(8).gamma(0.5, 2, (count, 3, 2, 12, 15)).astype(np.float32)
    return rain, [scored(o, a, b) for o, a, b in rain]


def scored(o: np.ndarray, a: np.ndarray, b: np.ndarray) -> CaseSums:
    return score_case(o, {"a": Forecast(a), "b": Forecast(b)}, (1.0, 4.0), [1, 3])


def pooled(sums: list[CaseSums], reference: str | None = None, block: int = 1) -> xr.Dataset:
    return pool(
        sums,
        forecasters=["a", "b"],
        lead_time=np.array([5, 10]) * MINUTE,
        thresholds=(1.0, 4.0),
        scales=(1, 3),
        reference=reference,
        block=block,
    )


def test_pooled_cases_are_one_large_case() -> None:
    from scores.continuous import mae
    from scores.spatial import fss_2d

    rain, sums = cases(4)
    scores = pooled(sums)
    o, a = (xr.DataArray(rain[:, k].astype(float), dims=("case", "lead", "y", "x")) for k in (0, 1))
    np.testing.assert_allclose(scores["mae"][0], mae(a, o, preserve_dims="lead"), rtol=1e-6)
    for t, threshold in enumerate((1.0, 4.0)):
        f_events, o_events = rain[:, 1] >= threshold, rain[:, 0] >= threshold
        hits = (f_events & o_events).sum((0, 2, 3))
        np.testing.assert_array_equal(scores["hits"][0, :, t], hits)
        neither = (~f_events & ~o_events).sum((0, 2, 3))
        np.testing.assert_array_equal(scores["correct_negatives"][0, :, t], neither)
        csi = hits / (f_events | o_events).sum((0, 2, 3))
        np.testing.assert_allclose(scores["csi"][0, :, t], csi)
        np.testing.assert_allclose(
            scores["bias"][0, :, t], f_events.sum((0, 2, 3)) / o_events.sum((0, 2, 3))
        )
        for lead in range(2):
            fss = fss_2d(
                a[:, lead],
                o[:, lead],
                event_threshold=threshold,
                threshold_operator=np.greater_equal,
                window_size=(3, 3),
                spatial_dims=("y", "x"),
                reduce_dims=["case", "y", "x"],
            )
            np.testing.assert_allclose(scores["fss"][0, lead, t, 1], fss, rtol=1e-12)


def test_pixels_left_out_show_in_the_fraction() -> None:
    _, sums = cases(2)
    assert (pooled(sums)["scored_fraction"] == 1).all()
    o, a, b = np.ones((3, 2, 12, 15), np.float32)
    b[1, :6] = np.nan
    half = scored(o, a, b)
    np.testing.assert_array_equal(pooled([sums[0], half])["scored_fraction"], [1, 0.75])


def test_interval_needs_three_runs_of_cases() -> None:
    _, sums = cases(6)
    assert "csi_difference" not in pooled(sums)
    enough, too_few = pooled(sums, "b", block=2), pooled(sums, "b", block=3)
    assert (enough["csi_difference_low"] <= enough["csi_difference"]).all()
    assert (enough["csi_difference"] <= enough["csi_difference_high"]).all()
    assert (enough["csi_difference_low"][0] < enough["csi_difference_high"][0]).all()
    assert too_few["csi_difference_low"].isnull().all()
    xr.testing.assert_equal(enough["csi_difference"], too_few["csi_difference"])
