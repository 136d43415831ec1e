"""Z-R: values, no echo, missing, hail and noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from nowcast.rain.rainrate import RELATIONS, ZRRelation

POSITIVE = st.floats(0.5, 1000)


@given(a=POSITIVE, b=st.floats(0.5, 3), rate=st.floats(0.01, 500))
def test_rain_rate_inverts_reflectivity(a, b, rate):
    relation = ZRRelation(a, b, hail_cap=None, noise=None)
    dbz = relation.reflectivity(np.array([rate]))
    np.testing.assert_allclose(relation.rain_rate(dbz), [rate], rtol=1e-4)


@pytest.mark.parametrize("name", RELATIONS)
def test_named_relations_hold_z_equals_a_r_to_the_b(name):
    relation = ZRRelation.named(name, hail_cap=None, noise=None)
    a, b = RELATIONS[name]
    dbz = 10 * np.log10(a * 10.0**b)
    np.testing.assert_allclose(relation.rain_rate(np.array([dbz])), [10.0], rtol=1e-5)


@given(st.lists(st.floats(-40, 80, width=32), min_size=1, max_size=20))
def test_rain_never_falls_with_reflectivity_and_stays_within_noise_and_cap(values):
    relation = ZRRelation()
    rain = relation.rain_rate(np.sort(np.array(values, np.float32)))
    assert rain.dtype == np.float32
    assert np.all(np.diff(rain) >= 0)
    assert np.all((rain == 0) | (rain > 0.09))
    assert rain.max() <= relation.rain_rate(np.array([53.0]))[0]


def test_no_echo_is_zero_and_missing_stays_missing():
    rain = ZRRelation(hail_cap=None, noise=None).rain_rate(np.array([-np.inf, np.nan, -32.0]))
    assert rain[0] == 0
    assert np.isnan(rain[1])
    assert 0 < rain[2] < 1e-3


def test_hail_counts_as_the_cap():
    rain = ZRRelation.named("wsr88d", hail_cap=53).rain_rate(np.array([53.0, 71.5]))
    assert rain[0] == rain[1] == pytest.approx(103.8, abs=0.1)


def test_numbers_make_a_relation():
    relation = ZRRelation.named("250, 1.2")
    assert (relation.a, relation.b, relation.name) == (250, 1.2, "custom")
    assert str(relation) == "Z = 250 R^1.2 (custom), hail cap 53 dBZ, no rain below 7 dBZ"


@pytest.mark.parametrize("choice", ["marshall", "1", "0,1.6", "200,-1", "a,b", "1,2,3"])
def test_other_choices_are_refused_with_the_value(choice):
    with pytest.raises(SettingsError, match=f"found '{choice}'"):
        ZRRelation.named(choice)
