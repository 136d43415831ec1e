"""Tests of the models of bands: what they expect, forget, and are estimated as."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.lagrangian.pyramid import BandModel, Pyramid, fit, lagged, root_of

TIMES = np.arange(1.0, 4)


def simulated(root: float, steps: int, size: int = 4000) -> np.ndarray:
    """Run the recursion x = 2 r x' - r^2 x'' + noise, (step, size), until it is stationary."""
    rng = np.random.default_rng(0)
    made = list(np.zeros((2, size)))
    for _ in range(400 + steps):
        made.append(2 * root * made[-1] - root**2 * made[-2] + rng.standard_normal(size))
    return np.stack(made[-steps:])


@pytest.mark.parametrize("root", [0.2, 0.7, 0.95])
def test_weights_are_those_of_the_recursion(root: float) -> None:
    last, before = 1.3, -0.4
    weights = BandModel(0.0, root).ahead(np.arange(1.0, 7))
    path = [before, last]
    for _ in range(6):
        path.append(2 * root * path[-1] - root**2 * path[-2])
    np.testing.assert_allclose(weights @ [last, before], path[2:])


@pytest.mark.parametrize("root", [0.2, 0.7, 0.9])
def test_correlations_and_what_is_forgotten_are_those_of_the_process(root: float) -> None:
    x = simulated(root, 8)
    correlation = np.corrcoef(x[-3:])
    assert correlation[2, 1] == pytest.approx(lagged(root, 1), abs=0.03)
    assert correlation[2, 0] == pytest.approx(lagged(root, 2), abs=0.05)
    ahead = BandModel(0.0, root).ahead(TIMES) @ x[[4, 3]]
    error = ((x[5:] - ahead) ** 2).mean(1) / (x**2).mean()
    np.testing.assert_allclose(BandModel(0.0, root).forgotten(TIMES), error, rtol=0.1)


@pytest.mark.parametrize("time", [0.5, 1, 2, 2.4])
@pytest.mark.parametrize("root", [0.2, 0.7, 0.95])
def test_a_root_is_found_by_a_correlation_at_any_time(root: float, time: float) -> None:
    assert root_of(lagged(root, time), time) == pytest.approx(root)


def test_between_whole_times_it_is_forgotten_evenly() -> None:
    told = BandModel(0.0, 0.8).forgotten(np.array([1, 1.5, 2, 0.25]))
    assert told[1] == pytest.approx((told[0] + told[2]) / 2)
    assert told[3] == pytest.approx(told[0] / 4)


def test_a_band_that_grows_goes_on_growing_and_then_returns() -> None:
    at = BandModel(0.0, 0.9).ahead(np.arange(1.0, 61)) @ [1.0, 0.8]
    assert at[0] > 1
    assert at.argmax() < 15
    assert 0 < at[-1] < 0.2


def test_fit_finds_the_root_and_the_mean() -> None:
    x = simulated(0.8, 3, 120 * 120).reshape(3, 120, 120).astype(np.float32) + 5
    ones = np.ones((120, 120), np.float32)
    (model,) = fit([Pyramid([band], [ones]) for band in x], [2, 1, 0])
    assert model.root == pytest.approx(0.8, abs=0.02)
    assert model.mean == pytest.approx(5, abs=0.1)


def test_a_flat_band_is_forgotten_at_once() -> None:
    flat = Pyramid([np.full((9, 9), 2, np.float32)], [np.ones((9, 9), np.float32)])
    (model,) = fit([flat, flat, flat], [4, 2, 0])
    assert model.root == 0
    np.testing.assert_array_equal(model.ahead(TIMES), 0)
    np.testing.assert_array_equal(model.forgotten(TIMES), 1)
