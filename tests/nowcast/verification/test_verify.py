"""Tests of the verification of forecasters."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError, SettingsError, ShapeError
from nowcast.verification import verify
from tests.nowcast.fields import translation
from tests.nowcast.methods import extrapolation, persistence

FRAMES, SIZE = 28, 64


def rain(frames: np.ndarray, spacing: float = 1000.0) -> xr.DataArray:
    time = np.datetime64("2010-08-26T00:00", "ns") + np.arange(len(frames)) * np.timedelta64(5, "m")
    y, x = (np.arange(n) * spacing for n in frames.shape[1:])
    return xr.DataArray(frames, coords={"time": time, "y": y, "x": x}, dims=("time", "y", "x"))


@pytest.fixture(scope="module")
def moving() -> xr.DataArray:
    return rain(translation(FRAMES, 1.0, -1.0, size=SIZE, margin=48, seed=2))


class Oracle:
    """Forecaster that looks up what was observed, times ``factor``."""

    def __init__(self, observed: xr.DataArray, n_out: int, factor: float = 1.0) -> None:
        self.frames, self.n_out, self.factor = observed.to_numpy(), n_out, factor

    def __call__(self, frames: np.ndarray, /) -> np.ndarray:
        last = next(i for i, f in enumerate(self.frames) if np.array_equal(f, frames[-1], True))
        return self.frames[last + 1 : last + 1 + self.n_out] * np.float32(self.factor)


def test_perfect_forecast_has_perfect_scores(moving: xr.DataArray) -> None:
    scores = verify(moving, [3, 6, 9], {"oracle": Oracle(moving, 4)}, 3, 4, thresholds=(0.1, 1.0))
    assert scores.sizes == {"forecaster": 1, "lead_time": 4, "threshold": 2, "scale": 3}
    assert (scores["events"] > 0).all()
    for name, perfect in {"csi": 1, "pod": 1, "far": 0, "bias": 1, "mae": 0, "fss": 1}.items():
        assert (scores[name] == perfect).all(), name
    assert (scores["scored_fraction"] == 1).all()
    assert scores.attrs["n_cases"] == 3
    np.testing.assert_array_equal(
        scores["lead_time"], np.array([5, 10, 15, 20]) * np.timedelta64(60, "s")
    )


def test_forecast_of_nothing_misses_all(moving: xr.DataArray) -> None:
    scores = verify(moving, [3], {"dry": Oracle(moving, 2, 0.0)}, 3, 2, thresholds=(1.0,))
    assert (scores[["csi", "pod", "bias", "fss"]] == 0).all().to_array().all()
    assert np.isnan(scores["far"]).all()
    assert (scores["misses"].isel(forecaster=0) == scores["events"]).all()
    np.testing.assert_allclose(scores["mae"][0], moving[3:5].mean(("y", "x")), rtol=1e-5)


def test_no_event_is_no_score_rather_than_a_bad_one(moving: xr.DataArray) -> None:
    scores = verify(moving, [3], {"wild": Oracle(moving, 2, 1e4)}, 3, 2, thresholds=(900.0,))
    assert (scores["events"] == 0).all()
    assert (scores["false_alarms"] > 0).all()
    for name in ("csi", "pod", "bias", "fss"):
        assert np.isnan(scores[name]).all(), name
    assert (scores["far"] == 1).all()


def test_scores_are_ratios_of_sums_and_not_means_of_ratios() -> None:
    frames = np.zeros((4, 32, 32), np.float32)
    frames[1, :10, :10] = 2  # a storm that the forecast has ...
    frames[3, :20, :20] = 2  # ... and a larger one of which it has a quarter
    observed = rain(frames)

    def forecast(before: np.ndarray, /) -> np.ndarray:
        return frames[1:2] if not before.any() else np.zeros((1, 32, 32), np.float32)

    scores = verify(observed, [1, 3], {"m": forecast}, 1, 1, thresholds=(1.0,), scales=(1, 4))
    # The second case's input is frame 2, dry as frame 0: the first storm is forecast once more.
    each = [
        verify(observed, [s], {"m": forecast}, 1, 1, thresholds=(1.0,), scales=(1,))["csi"].item()
        for s in (1, 3)
    ]
    assert each == [1, 100 / 400]
    assert scores["csi"].item() == pytest.approx(200 / 500)
    assert scores["csi"].item() != pytest.approx(np.mean(each), abs=1e-4)
    assert scores["fss"].sel(scale=1).item() == pytest.approx(1 - 300 / (200 + 500))


def test_all_methods_are_scored_on_the_same_pixels(moving: xr.DataArray) -> None:
    observed = moving.copy()
    observed[:, :10] = np.nan
    both = {"persistence": persistence(4), "flow": extrapolation(4)}
    scores = verify(observed, [3, 9], both, 3, 4, thresholds=(1.0,))
    table = (
        scores[["hits", "misses", "false_alarms", "correct_negatives"]].to_array().sum("variable")
    )
    assert (table.loc[{"forecaster": "persistence"}] == table.loc[{"forecaster": "flow"}]).all()
    observed_events = scores["hits"] + scores["misses"]
    assert (observed_events == scores["events"]).all()
    pixels = table.isel(forecaster=0, threshold=0) / (2 * SIZE**2)
    np.testing.assert_allclose(scores["scored_fraction"], pixels)
    # What moves in is not known, so fewer pixels are left the further ahead.
    assert (np.diff(scores["scored_fraction"]) < 0).all()
    assert scores["scored_fraction"][0] < 54 / 64


def test_extrapolation_gains_on_persistence_with_an_interval(moving: xr.DataArray) -> None:
    calls = []
    scores = verify(
        moving,
        [3, 10, 17, 24],
        {"persistence": persistence(4), "flow": extrapolation(4)},
        3,
        4,
        thresholds=(1.0,),
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(k, 4) for k in range(1, 5)]
    gain = scores["csi_difference"].sel({"forecaster": "flow", "threshold": 1.0})
    assert (gain > 0.1).all()
    assert (scores["csi_difference"].loc[{"forecaster": "persistence"}] == 0).all()
    low, high = (
        scores[f"csi_difference_{end}"].loc[{"forecaster": "flow"}] for end in ("low", "high")
    )
    assert (low.squeeze() <= gain).all()
    assert (gain <= high.squeeze()).all()
    assert (low > 0).all()
    assert scores.attrs["cases_sharing_frames"] == 1
    still, flow = scores["csi"].sel(threshold=1.0)
    np.testing.assert_allclose(gain, flow - still)


def test_cases_that_share_all_their_rain_give_no_interval(moving: xr.DataArray) -> None:
    scores = verify(moving, range(3, 9), {"persistence": persistence(4)}, 3, 4)
    assert scores.attrs["cases_sharing_frames"] == 6
    assert scores["csi_difference_low"].isnull().all()


def test_windows_follow_the_grid_spacing(moving: xr.DataArray) -> None:
    frames = moving.to_numpy()
    half = rain(frames, spacing=500.0)
    scores = verify(half, [3], {"p": persistence(2)}, 3, 2, scales=(0.1, 1, 5))
    assert scores.attrs["fss_window_pixels"] == [1, 2, 10]
    assert "csi_difference" not in scores


def test_frames_go_to_every_method_as_they_were(moving: xr.DataArray) -> None:
    def vandal(frames: np.ndarray, /) -> np.ndarray:
        frames[...] = 0
        return frames[:2]

    alone = verify(moving, [3], {"p": persistence(2)}, 3, 2)
    beside = verify(moving, [3], {"vandal": vandal, "p": persistence(2)}, 3, 2)
    xr.testing.assert_equal(
        alone["csi"].loc[{"forecaster": "p"}], beside["csi"].loc[{"forecaster": "p"}]
    )


@pytest.mark.parametrize("start", [2, 6, 7, 8, 25, -1])
def test_gaps_and_ends_are_never_bridged(moving: xr.DataArray, start: int) -> None:
    gap = moving.drop_isel(time=[7])
    with pytest.raises(DataError, match=f"3 frames before and 3 .* 5 min apart.* start {start} "):
        verify(gap, [3, start], {"p": persistence(3)}, 3, 3)


def test_scans_some_seconds_late_are_of_the_nominal_step(moving: xr.DataArray) -> None:
    late = np.resize([0, 40, 5, 25], FRAMES) * np.timedelta64(1, "s")
    scores = verify(moving.assign_coords(time=moving.time + late), [9], {"p": persistence(2)}, 3, 2)
    assert (scores["lead_time"] / np.timedelta64(60, "s")).values.tolist() == [5, 10]


def test_missing_everywhere_is_said(moving: xr.DataArray) -> None:
    with pytest.raises(DataError, match=r"all \(p\) are finite, found none in 2 cases"):
        verify(moving * np.nan, [3, 4], {"p": persistence(2)}, 3, 2)


def test_a_case_without_data_is_not_counted(moving: xr.DataArray) -> None:
    observed = moving.copy()
    observed[:6] = np.nan
    scores = verify(observed, [3, 10], {"p": persistence(2)}, 3, 2)
    assert scores.attrs["n_cases"] == 1


def test_no_start_is_said(moving: xr.DataArray) -> None:
    with pytest.raises(DataError, match=r"3 \+ 12 consecutive frames .* 28 frames"):
        verify(moving, [], {"p": persistence(12)}, 3, 12)


def test_wrong_answers_are_named(moving: xr.DataArray) -> None:
    with pytest.raises(ShapeError, match=r"\(4, 64, 64\) from p, found \(2, 64, 64\)"):
        verify(moving, [3], {"p": persistence(2)}, 3, 4)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"scales": (1, 100)}, "at most the 64 km of the grid, found 100 km"),
        ({"scales": (0,)}, "found 0 km"),
        ({"thresholds": (0.0, 1.0)}, "above 0 mm/h"),
        ({"thresholds": ()}, "above 0 mm/h"),
    ],
)
def test_settings_that_make_no_sense(
    moving: xr.DataArray, settings: dict[str, tuple[float, ...]], sentence: str
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        verify(moving, [3], {"p": persistence(2)}, 3, 2, **settings)


def test_no_method_is_refused(moving: xr.DataArray) -> None:
    with pytest.raises(SettingsError, match="one forecaster at least"):
        verify(moving, [3], {}, 3, 2)


def test_oblong_pixels_are_refused(moving: xr.DataArray) -> None:
    with pytest.raises(DataError, match="found 2000 m by 1000 m"):
        verify(moving.assign_coords(y=moving.y * 2), [3], {"p": persistence(2)}, 3, 2)


def test_rain_without_a_grid_is_refused(moving: xr.DataArray) -> None:
    with pytest.raises(DataError, match="coordinates y and x in m"):
        verify(moving.drop_vars("x"), [3], {"p": persistence(2)}, 3, 2)
