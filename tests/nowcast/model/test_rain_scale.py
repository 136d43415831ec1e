"""The scale between rain rates and a network's numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nowcast.model.rain_scale import RainScale

rates = st.floats(0, 150, width=32)


@given(rates)
def test_there_and_back(rate):
    scale = RainScale()
    again = scale.to_rain(scale.to_network(np.array([rate], np.float32)))
    np.testing.assert_allclose(again, [rate], rtol=2e-5, atol=1e-6)


@given(rates, rates)
def test_more_rain_is_more(a, b):
    values = RainScale().to_network(np.array(sorted((a, b)), np.float32))
    assert values[0] <= values[1]


def test_dry_is_zero_full_is_one_missing_stays():
    values = RainScale(0.1, 50).to_network(np.array([0, 50, np.nan, -3], np.float32))
    np.testing.assert_allclose(values, [0, 1, np.nan, 0], rtol=1e-6)


def test_what_a_network_makes_is_never_below_zero_or_without_bound():
    rain = RainScale(0.1, 50).to_rain(np.array([-3, 40], np.float32))
    assert rain[0] == 0
    np.testing.assert_allclose(rain[1], 200, rtol=1e-4)
    assert rain.dtype == np.float32
