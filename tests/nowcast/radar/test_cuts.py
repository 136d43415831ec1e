"""Elevation cuts: lowest ones, split cuts, and moments joined."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nowcast.radar.cuts import join_moments, lowest_cuts, usable_sweeps
from nowcast.radar.sweep import Sweep


def sweep(elevation=0.5, gates=10, second=0, dbz=True, rhohv=False) -> Sweep:
    values = np.zeros((36, gates), np.float32)
    return Sweep(
        elevation=elevation,
        azimuth=np.arange(36) * 10.0,
        range=500.0 + 1000.0 * np.arange(gates),
        time=np.datetime64("2020-01-01T00:00:00") + second,
        site=None,
        dbz=values if dbz else None,
        rhohv=values if rhohv else None,
    )


@given(st.lists(st.floats(0, 90), max_size=20), st.integers(1, 5))
def test_cuts_are_lowest_first_and_disjoint(elevations, count):
    cuts = lowest_cuts(elevations, count)
    assert len(cuts) <= count
    flat = [index for cut in cuts for index in cut]
    assert len(flat) == len(set(flat))
    lowest = [min(elevations[index] for index in cut) for cut in cuts]
    assert lowest == sorted(lowest)
    if any(elevation <= 45 for elevation in elevations):
        assert lowest[0] == min(elevations)


def test_of_a_split_cut_the_longest_range_is_used_and_of_equals_the_first():
    sweeps = [sweep(0.48, 8), sweep(0.5, 18, 20), sweep(0.48, 18, 10), sweep(1.5)]
    assert [s.time for s in usable_sweeps(sweeps, 1)] == [sweeps[2].time]
    assert len(usable_sweeps(sweeps, 2)) == 2


def test_sweeps_without_reflectivity_are_passed_over():
    sweeps = [sweep(0.4, dbz=False), sweep(0.5), sweep(1.5)]
    assert usable_sweeps(sweeps, 1) == [sweeps[1]]


def test_moments_of_one_turn_are_joined_and_others_are_not():
    joined = join_moments(
        [
            sweep(dbz=False, rhohv=True),
            sweep(second=3),
            sweep(second=120),
            sweep(gates=5),
            sweep(1.5),
        ]
    )
    assert [(s.dbz is not None, s.rhohv is not None) for s in joined] == [
        (True, True),
        (True, False),
        (True, False),
        (True, False),
    ]
