"""The verification of forecasters."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError, SettingsError, ShapeError
from nowcast.forecasters import Extrapolation, Forecast, Persistence
from nowcast.verification import findings, verify
from tests.nowcast.stores import Answers, oracle, translation

FRAMES, SIZE = 28, 64


def rain(frames: np.ndarray, spacing: float = 1000.0, minutes: int = 5) -> xr.DataArray:
    time = np.datetime64("2010-08-26T00:00", "ns") + np.arange(len(frames)) * np.timedelta64(
        minutes, "m"
    )
    y, x = (np.arange(n) * spacing for n in frames.shape[1:])
    return xr.DataArray(frames, coords={"time": time, "y": y, "x": x}, dims=("time", "y", "x"))


@pytest.fixture(scope="module")
def moving():
    return rain(translation(FRAMES, 1.0, -1.0, size=SIZE, margin=48, seed=2))


def test_perfect_forecast_has_perfect_scores(moving):
    scores = verify(moving[:10], {"oracle": oracle(moving.to_numpy())}, 4, thresholds=(0.1, 1.0))
    assert {n: scores.sizes[n] for n in ("forecaster", "lead_time", "threshold", "scale")} == {
        "forecaster": 1, "lead_time": 4, "threshold": 2, "scale": 3,
    }  # fmt: skip
    assert (scores["events"] > 0).all()
    perfect = {"csi": 1, "pod": 1, "far": 0, "bias": 1, "mae": 0, "fss": 1, "brier": 0, "crps": 0}
    for name, value in perfect.items():
        assert (scores[name] == value).all(), name
    assert (scores["scored_fraction"] == 1).all()
    np.testing.assert_allclose(scores["power_ratio"].isel(lead_time=[1, 3]).dropna("wavelength"), 1)
    np.testing.assert_array_equal(
        scores["lead_time"], np.array([5, 10, 15, 20]) * np.timedelta64(60, "s")
    )


@pytest.mark.slow
def test_every_lead_is_scored_at_the_same_times(moving):
    # Rain that grows by the frame: with other times for each lead, events would differ.
    grows = moving * np.linspace(0.2, 2, FRAMES)[:, np.newaxis, np.newaxis]
    for every, leads in ((1, 4), (2, 4), (3, 7)):
        scores = verify(grows, {"p": Persistence()}, leads, every=every)
        assert (scores["events"] == scores["events"].isel(lead_time=0)).all(), every
        minutes = scores["lead_time"].values / np.timedelta64(60, "s")
        assert minutes.tolist() == [5 * k for k in range(every, leads + 1, every)]
        assert scores.attrs["valid_times"] == "the same for all leads"
    apart = verify(grows, {"p": Persistence()}, 4, every=4)
    assert apart.sizes["lead_time"] == 4
    assert apart.attrs["valid_times"] == "different for each lead"
    assert (apart["events"] != apart["events"].isel(lead_time=0)).any()


def test_forecast_of_nothing_misses_all(moving):
    dry = {"dry": oracle(moving.to_numpy(), 0.0)}
    scores = verify(moving[:6], dry, 2, thresholds=(1.0,))
    assert (scores[["csi", "pod", "bias", "fss"]] == 0).all().to_array().all()
    assert np.isnan(scores["far"]).all()
    assert (scores["misses"].isel(forecaster=0) == scores["events"]).all()
    np.testing.assert_allclose(scores["mae"][0], moving[4:6].mean(), rtol=1e-5)
    # For yes and no the Brier score is the share of wrong forecasts.
    share = (moving[4:6] >= 1).mean()
    np.testing.assert_allclose(scores["brier"].squeeze(), share)


def test_without_events_there_is_no_score(moving):
    wild = {"wild": oracle(moving.to_numpy(), 1e4)}
    scores = verify(moving[:6], wild, 2, thresholds=(900.0,))
    assert (scores["events"] == 0).all()
    assert (scores["false_alarms"] > 0).all()
    for name in ("csi", "pod", "bias", "fss"):
        assert np.isnan(scores[name]).all(), name
    assert (scores["far"] == 1).all()


@pytest.mark.slow
def test_scores_are_ratios_of_sums_and_not_means_of_ratios():
    frames = np.zeros((3, 32, 32), np.float32)
    frames[1, :10, :10] = 2  # a storm that the forecast has ...
    frames[2, :20, :20] = 2  # ... and a larger one: it has a quarter of that
    method = {"m": Answers(lambda before, leads: frames[1:2])}
    scores = verify(rain(frames), method, 1, thresholds=(1.0,), scales=(1, 4))
    each = [
        verify(rain(frames[k : k + 2]), method, 1, thresholds=(1.0,), scales=(1,))["csi"].item()
        for k in (0, 1)
    ]
    assert each == [1, 100 / 400]
    assert scores["csi"].item() == pytest.approx(200 / 500)
    assert scores["csi"].item() != pytest.approx(np.mean(each), abs=1e-4)
    assert scores["fss"].sel(scale=1).item() == pytest.approx(1 - 300 / (200 + 500))


def test_all_methods_are_scored_on_the_same_pixels(moving):
    observed = moving.copy()
    observed[:, :10] = np.nan
    both = {"persistence": Persistence(), "flow": Extrapolation()}
    scores = verify(observed[:11], both, 4, thresholds=(1.0,))
    table = (
        scores[["hits", "misses", "false_alarms", "correct_negatives"]].to_array().sum("variable")
    )
    assert (table.loc[{"forecaster": "persistence"}] == table.loc[{"forecaster": "flow"}]).all()
    observed_events = scores["hits"] + scores["misses"]
    assert (observed_events == scores["events"]).all()
    # Three valid times: 11 frames, of which 5 go in and 4 leads reach the rest.
    pixels = table.isel(forecaster=0, threshold=0) / (3 * SIZE**2)
    np.testing.assert_allclose(scores["scored_fraction"], pixels)
    # Rain that moves in is unknown, so longer leads have fewer pixels.
    assert (np.diff(scores["scored_fraction"]) < 0).all()
    assert scores["scored_fraction"][0] < 54 / 64


@pytest.mark.slow
def test_extrapolation_gains_on_persistence_with_an_interval(moving):
    calls = []
    scores = verify(
        moving,
        {"persistence": Persistence(), "extrapolation": Extrapolation(baseline=None)},
        4,
        thresholds=(1.0,),
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(k, 25) for k in range(1, 26)]
    for name, sign in (("csi", 1), ("fss", 1), ("brier", -1), ("crps", -1)):
        gain, low, high = (
            sign * scores[f"{name}_difference{end}"].sel(forecaster="extrapolation")
            for end in ("", "_low", "_high")
        )
        assert (gain > 0).all(), name
        low, high = np.minimum(low, high), np.maximum(low, high)
        assert (low > 0).all(), name
        assert ((low <= gain) & (gain <= high)).all(), name
        assert (scores[f"{name}_difference"].sel(forecaster="persistence") == 0).all()
        still, flow = scores[name]
        np.testing.assert_allclose(sign * gain, flow - still)
    assert scores.attrs["cases_sharing_frames"] == 7
    assert scores.attrs["n_events"] == 1
    sentences = findings(scores)
    assert sentences[0] == (
        "extrapolation against persistence: CSI at 1 mm/h: better at all lead times."
    )
    assert sentences[-1].startswith("The intervals are from 1 event:")


def test_cases_that_share_all_their_rain_give_no_interval(moving):
    scores = verify(moving[:9], {"persistence": Persistence(), "p": Persistence()}, 4)
    assert scores["csi_difference_low"].isnull().all()
    assert "Too few independent cases" in findings(scores)[0]


@pytest.mark.slow
def test_several_archives_of_other_grids_and_steps(moving):
    fine = rain(translation(31, 0.5, -0.5, size=80, margin=48, seed=3), spacing=500.0)
    slow = rain(translation(16, 2.0, -2.0, size=SIZE, margin=48, seed=4), minutes=10)
    methods = {"persistence": Persistence(), "extrapolation": Extrapolation()}
    scores = verify([moving, fine, slow], methods, 2, scales=(1, 5), thresholds=(1.0,))
    minutes = scores["lead_time"].values / np.timedelta64(60, "s")
    assert minutes.tolist() == [10, 20]
    assert scores.attrs["n_events"] == 3
    alone = [
        verify(part, methods, leads, every=every, scales=(1, 5), thresholds=(1.0,))
        for part, leads, every in ((moving, 4, 2), (fine, 4, 2), (slow, 2, 1))
    ]
    for name in ("hits", "misses", "false_alarms"):
        total = sum(one[name].to_numpy() for one in alone)
        np.testing.assert_array_equal(scores[name], total)
    with pytest.raises(DataError, match=r"divide the longest, 5 min, found one of 3 min"):
        verify([moving, rain(moving.to_numpy(), minutes=3)], methods, 2)


def test_probabilities_and_members_are_scored(moving):
    observed = moving.to_numpy()
    truth = oracle(observed)

    def ensemble(frames, leads):
        field = truth.answer(frames, leads)
        return Forecast(field, members=np.stack([field, 0 * field]))

    def sure(frames, leads):
        field = truth.answer(frames, leads)
        p = (field >= 1).astype(np.float32)[np.newaxis] * np.float32(0.8)
        return Forecast(
            0 * field, (1.0,), p, event_probability=np.full((1, leads), 0.5, np.float32)
        )

    methods = {"half": Answers(ensemble, 3), "sure": Answers(sure, 3), "dry": oracle(observed, 0)}
    scores = verify(moving, methods, 2, thresholds=(1.0,), reference="dry")
    share = float((moving[4:] >= 1).mean())
    brier = scores["brier"].squeeze().values
    np.testing.assert_allclose(brier, np.outer([0.25, 0.04, 1], [share, share]), rtol=1e-5)
    # A forecast with an event probability decides by it.
    np.testing.assert_allclose(scores["csi"].sel(forecaster="sure"), 1)
    # One of two members is right, the other dry: CRPS is a quarter of the dry member's error.
    mae = scores["mae"].sel(forecaster="dry")
    np.testing.assert_allclose(scores["crps"].sel(forecaster="half"), mae / 4, rtol=1e-5)
    assert scores["crps"].sel(forecaster="sure").isnull().all()
    np.testing.assert_allclose(scores["crps"].sel(forecaster="dry"), mae, rtol=1e-6)
    np.testing.assert_allclose(scores["roc_area"].squeeze()[:2], 1)
    assert scores["roc_area"].sel(forecaster="dry").isnull().all()
    parts = scores.sel(forecaster="sure")
    np.testing.assert_allclose(parts["brier_reliability"].squeeze(), share * 0.04, rtol=1e-5)
    np.testing.assert_allclose(parts["brier_resolution"], parts["brier_uncertainty"], rtol=1e-6)
    ranks = scores["rank_histogram"]
    np.testing.assert_allclose(ranks.sel(forecaster="half").sum("rank"), 1)
    assert ranks.sel(forecaster="dry").isnull().all()
    assert any("half against dry: CRPS" in text for text in findings(scores))


def test_windows_follow_the_grid_spacing(moving):
    half = rain(moving.to_numpy()[:6], spacing=500.0)
    scores = verify(half, {"p": Persistence()}, 2, scales=(0.1, 1, 5))
    assert scores.attrs["fss_window_pixels"] == [1, 2, 10]
    assert "csi_difference" not in scores


def test_a_method_that_changes_frames_changes_no_other(moving):
    def vandal(frames, leads):
        frames[...] = 0
        return np.repeat(frames[:1], leads, 0)

    alone = verify(moving[:6], {"p": Persistence()}, 2)
    together = verify(moving[:6], {"vandal": Answers(vandal), "p": Persistence()}, 2)
    xr.testing.assert_equal(
        alone["csi"].loc[{"forecaster": "p"}], together["csi"].loc[{"forecaster": "p"}]
    )


def test_each_method_gets_as_many_frames_as_it_reads(moving):
    seen: dict[str, set[int]] = {"one": set(), "three": set()}

    def remember(name):
        def answer(frames, leads):
            seen[name].add(len(frames))
            return np.repeat(frames[-1:], leads, 0)

        return Answers(answer, {"one": 1, "three": 3}[name])

    verify(moving[:8], {name: remember(name) for name in seen}, 2)
    assert seen == {"one": {1}, "three": {3}}


def test_scans_some_seconds_late_have_the_nominal_step(moving):
    late = np.resize([0, 40, 5, 25], FRAMES) * np.timedelta64(1, "s")
    scores = verify(moving.assign_coords(time=moving.time + late), {"p": Persistence()}, 2)
    assert (scores["lead_time"] / np.timedelta64(60, "s")).values.tolist() == [5, 10]


def test_a_case_without_data_is_not_counted(moving):
    observed = moving[:8].copy()
    observed[:4] = np.nan
    scores = verify(observed, {"p": Persistence()}, 2)
    assert scores.attrs["n_cases"] == verify(moving[4:8], {"p": Persistence()}, 2).attrs["n_cases"]


P = {"p": Persistence()}
TWICE = {"p": Answers(lambda frames, leads: np.repeat(frames, 2, 0))}


@pytest.mark.parametrize(
    ("change", "methods", "leads", "settings", "error", "sentence"),
    [
        (lambda rain: rain[:5] * np.nan, P, 2, {}, DataError,
         r"all \(p\) are finite, found none in 4 cases"),
        (lambda rain: rain, P, 28, {}, DataError, r"28 consecutive frames .* run in 28 frames"),
        (lambda rain: rain[:1], P, 2, {}, DataError, r"found no such run in 1 frames"),
        (lambda rain: rain.assign_coords(y=rain.y * 4), P, 2, {}, DataError,
         "found 4000 m by 1000 m"),
        (lambda rain: rain.drop_vars("x"), P, 2, {}, DataError, "coordinates y and x in m"),
        (lambda rain: rain, TWICE, 4, {}, ShapeError,
         r"\(4, 64, 64\) from p, found \(2, 64, 64\)"),
        (lambda rain: rain, {}, 2, {}, SettingsError, "one forecaster at least"),
        (lambda rain: rain, P, 0, {}, SettingsError, "at least 1 lead, found 0"),
        (lambda rain: rain, P, 2, {"every": 0}, SettingsError, "at least 1 frame, found 0"),
        (lambda rain: rain, P, 2, {"scales": (1, 100)}, SettingsError,
         "at most the 64 km of the grid, found 100 km"),
        (lambda rain: rain, P, 2, {"scales": (0,)}, SettingsError, "found 0 km"),
        (lambda rain: rain, P, 2, {"thresholds": (0.0, 1.0)}, SettingsError, "above 0 mm/h"),
        (lambda rain: rain, P, 2, {"thresholds": ()}, SettingsError, "above 0 mm/h"),
    ],
)  # fmt: skip
def test_senseless_arguments_are_refused_in_a_sentence(
    moving, change, methods, leads, settings, error, sentence
):
    with pytest.raises(error, match=sentence):
        verify(change(moving), methods, leads, **settings)
