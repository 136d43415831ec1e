"""Rolling verification scores each forecast once; recalibration is used where it is better."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from nowcast.forecasters import forecaster
from nowcast.forecasters.dataset import forecast_dataset
from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.predict import predict
from nowcast.live import recalibration
from nowcast.live import rolling as module
from nowcast.live.recalibration import EDGES, NAME, Recalibration, before, fit, judge
from nowcast.live.rolling import ISSUED, Rolling, _in_tens
from nowcast.rain.store import write_netcdf
from nowcast.verification.probability import probability_sums
from tests.nowcast.stores import moving_rain


@pytest.fixture(scope="module")
def rain():
    return moving_rain()


def issue(folder, rain, index, spoil=lambda forecast: forecast):
    """Write a forecast of three leads as a watch does."""
    at = str(rain["time"].values[index])[:16]
    made = spoil(predict(forecaster("sprog"), rain, at, 30, members=4))
    path = folder / f"{at.replace('-', '').replace(':', '')}Z.nc"
    write_netcdf(made, path)
    return path


def test_each_forecast_is_scored_once_when_it_is_past(tmp_path, rain):
    paths = [issue(tmp_path, rain, index) for index in (3, 4, 8)]
    early = rain.isel(time=slice(7))  # the last valid time of the first forecast
    rolling = Rolling(tmp_path, "sprog")
    assert rolling.verify(paths, early)
    first = rolling.scores()["csi"].sel(threshold=1.0, forecaster=ISSUED)
    assert not rolling.verify(paths, early)
    rolling = Rolling(tmp_path, "sprog")  # after a kill
    assert rolling.verify(paths, rain)
    assert rolling.verify(paths, rain)
    assert not rolling.verify(paths, rain)
    scores = rolling.scores()
    assert scores.attrs["n_cases"] == 3
    assert scores["forecaster"].values.tolist() == [ISSUED, "persistence", "extrapolation"]
    observed = rain["rain_rate"].values[4:7]
    field = xr.open_dataset(paths[0], engine="h5netcdf", decode_timedelta=True).load()
    seen = np.isfinite(predict(forecaster("extrapolation"), rain, "2020-06-01T00:30", 30).rain_rate)
    seen = seen.values & np.isfinite(observed) & np.isfinite(field["rain_rate"].values)
    at = field.sel(threshold=1.0)
    yes = (at["exceedance_probability"] >= at["event_probability"]).values & seen
    event = (observed >= 1) & seen
    expected = (yes & event).sum((1, 2)) / (yes | event).sum((1, 2))
    np.testing.assert_allclose(first, expected)
    assert np.isfinite(scores["crps"].sel(forecaster=ISSUED)).all()
    summary = rolling.tell()
    assert summary["csi"]["persistence"].keys() == {"10", "20", "30"}
    assert (tmp_path / "verification.json").exists()


@pytest.mark.slow
def test_falling_behind_is_reported_and_old_sums_are_dropped(tmp_path, monkeypatch):
    rain = moving_rain()
    monkeypatch.setattr(module, "HOURS", 1)

    def dry(made):
        fields = made["rain_rate"].values * 0
        return forecast_dataset(rain, index, Forecast(fields), "dry")

    rolling = Rolling(tmp_path, "sprog")
    for index in (3, 7, 14, 19):  # in four hours
        assert rolling.verify([issue(tmp_path, rain, index, dry)], rain)
    summary = rolling.tell()
    assert any("worse" in text for text in summary["behind"])
    monkeypatch.setattr(module, "KEPT", np.timedelta64(50, "m"))
    index = 20
    assert rolling.verify([issue(tmp_path, rain, index, dry)], rain)
    assert len(rolling.sums["block"]) == len(rolling.sums["pixels"]) == 1
    assert rolling.sums["starts"].astype(str).tolist() == [
        "2020-06-01T03:10:00",
        "2020-06-01T03:20:00",
    ]


@pytest.mark.slow
def test_biased_probabilities_are_recalibrated_from_their_raw_values(tmp_path, monkeypatch):
    """Curves lower probabilities that are too high; fitted to lowered ones, they stay the same."""
    rain = moving_rain()
    monkeypatch.setattr(module, "HOURS", 1)
    monkeypatch.setattr(recalibration, "FEWEST_BLOCKS", 4)
    monkeypatch.setattr(recalibration, "FOLDS", 4)

    def high(made):
        made[recalibration.NAME].values[:] **= 0.25
        return made

    rolling = Rolling(tmp_path, "sprog")
    indices = range(3, 20, 2)
    for index in indices:
        assert rolling.verify([issue(tmp_path, rain, index, high)], rain)
    verdict, curves = rolling.recalibration()
    assert verdict.adopted, verdict.sentence()
    assert verdict.change < -0.05
    assert curves.curves[0][0][5] < 0.45
    bent = tmp_path / "bent"
    bent.mkdir()
    again = Rolling(bent, "sprog")
    for index in indices:
        path = issue(bent, rain, index, lambda made: curves.applied(high(made)))
        assert again.verify([path], rain)
    _, same = again.recalibration()
    # Except at 5 mm/h, where probabilities may not exceed those of 1 mm/h.
    pairs = [np.array(one.curves)[:, :2] for one in (same, curves)]
    np.testing.assert_allclose(*pairs, atol=0.02)
    brier = [one.scores()["brier_reliability"].sel(forecaster=ISSUED) for one in (rolling, again)]
    assert float(brier[1].mean()) < 0.5 * float(brier[0].mean())


def test_damaged_sums_begin_anew_and_a_damaged_forecast_is_skipped(tmp_path, rain, caplog):
    (tmp_path / "verification.npz").write_bytes(b"half")
    rolling = Rolling(tmp_path, "sprog")
    assert "begin anew" in caplog.text
    damaged = tmp_path / "20200601T0020Z.nc"
    damaged.write_bytes(b"half")
    paths = [damaged, issue(tmp_path, rain, 3)]
    assert rolling.verify(paths, rain)
    assert rolling.verify(paths, rain)
    assert not rolling.verify(paths, rain)
    assert rolling.scores().attrs["n_cases"] == 1


def draw(rng, size, frequency):
    """Return probabilities, and events whose frequency is a function of them."""
    chance = rng.beta(0.5, 1.0, size).astype(np.float32)
    return chance, rng.random(size) < frequency(chance)


def blocks(frequency, count=20):
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        cells = []
        for _ in range(2):
            chance, event = draw(rng, (1, 2000), frequency)
            cells.append(_in_tens(probability_sums(chance, event, np.ones(event.shape, bool))))
        made.append(np.stack(cells)[:, np.newaxis])
    return np.stack(made)  # (block, lead, threshold, bin, 5)


def test_curves_minimise_the_squared_error():
    chance, event = draw(np.random.default_rng(1), (1, 50_000), lambda p: p**2)
    sums = _in_tens(probability_sums(chance, event, np.ones(event.shape, bool)))
    curve = fit(sums[np.newaxis, np.newaxis])[0, 0]
    assert (np.diff(curve) > 0).all()
    assert np.abs(curve - EDGES**2).max() < 0.03

    def brier(points):
        return float(np.mean((np.interp(chance, EDGES, points) - event) ** 2))

    least = brier(curve)
    assert least < brier(EDGES) - 0.005
    for k in range(len(EDGES)):
        for step in (-0.02, 0.02):
            assert brier(curve + step * (np.arange(len(EDGES)) == k)) > least - 2e-6


@pytest.mark.parametrize(
    ("frequency", "adopted"), [(lambda p: p**2, True), (lambda p: p, False)], ids=["off", "right"]
)
def test_only_better_curves_are_adopted(frequency, adopted):
    verdict = judge(blocks(frequency))
    assert verdict.adopted == adopted
    assert ("are recalibrated" in verdict.sentence()) == adopted
    assert not judge(blocks(frequency, 7)).adopted  # too few blocks


def test_curves_are_judged_on_blocks_left_out_of_the_fit():
    """One half is right and the other biased: curves of one are worse on the other."""
    sums = np.concatenate([blocks(lambda p: p**3, 10), blocks(lambda p: p, 10)])
    verdict = judge(sums)
    assert not verdict.adopted


def test_a_forecast_is_bent_and_bent_back():
    rain = moving_rain()
    forecast = predict(forecaster("sprog"), rain, lead_minutes=30)
    curves = [[(EDGES**2).tolist()] * 2, [(EDGES**1.5).tolist()] * 2]
    made = Recalibration([10.0, 30.0], [0.1, 5.0], curves).applied(forecast)
    chance = forecast[NAME].values
    np.testing.assert_allclose(
        made[NAME].values[0, 0], np.interp(chance[0, 0], EDGES, EDGES**2), atol=1e-6
    )
    middle = np.interp(chance[3, 1], EDGES, (EDGES**2 + EDGES**1.5) / 2)
    np.testing.assert_allclose(made[NAME].values[3, 1], middle, atol=1e-6)
    assert (np.diff(np.nan_to_num(made[NAME].values), axis=0) <= 0).all()
    np.testing.assert_allclose(before(made)[NAME].values, chance, atol=2e-4)
    yes = chance >= forecast["event_probability"].values[..., np.newaxis, np.newaxis]
    again = made[NAME].values >= made["event_probability"].values[..., np.newaxis, np.newaxis]
    assert (yes != again).mean() < 1e-4
    assert before(forecast) is forecast
