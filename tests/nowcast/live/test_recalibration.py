"""Recalibration: curves from sums, taken only where they prove better, and undone exactly."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict
from nowcast.live.recalibration import EDGES, NAME, Recalibration, before, fit, judge
from nowcast.live.rolling import _in_tens
from nowcast.verification.probability import probability_sums
from tests.nowcast.stores import moving_rain


def draw(rng, size, frequency):
    """Return probabilities, and events that come with another frequency."""
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


def test_curves_are_those_of_least_squares():
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
def test_the_gate_opens_only_where_it_proves_better(frequency, adopted):
    verdict = judge(blocks(frequency))
    assert verdict.adopted == adopted
    assert ("are recalibrated" in verdict.sentence()) == adopted
    assert not judge(blocks(frequency, 7)).adopted  # too few to tell


def test_the_change_is_that_of_the_brier_score_where_it_was_not_fitted():
    """Two halves of which one is right and one is off: curves of one are worse on the other."""
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
