"""Tests of where forecasts can start."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError, SettingsError
from nowcast.verification import valid_starts

FIVE = np.timedelta64(5, "m")


def times(frames: list[int]) -> np.ndarray:
    return np.datetime64("2010-08-26T00:00", "ns") + np.array(frames) * FIVE


@given(
    st.sets(st.integers(0, 40), max_size=30),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 9),
)
def test_exactly_the_runs_without_a_gap(
    frames: set[int], n_in: int, n_out: int, stride: int
) -> None:
    present = sorted(frames)
    every = [
        i
        for i, frame in enumerate(present)
        if all(frame + k in frames for k in range(-n_in, n_out))
    ]
    time = times(present)
    assert valid_starts(time, n_in, n_out, FIVE).tolist() == every
    apart = valid_starts(time, n_in, n_out, FIVE, stride=stride).tolist()
    assert set(apart) <= set(every)
    assert all(b - a >= stride for a, b in pairwise(apart))
    assert apart[:1] == every[:1]


def test_scans_some_seconds_off_follow_and_a_lost_scan_does_not() -> None:
    late = np.array([0, 20, -5, 0, 10, 0]) * np.timedelta64(1, "s")
    time = times([0, 1, 2, 4, 5, 6]) + late
    assert valid_starts(time, 2, 1, FIVE).tolist() == [2, 5]


def test_frames_twice_as_dense_are_another_step() -> None:
    assert valid_starts(times([0, 1, 2, 3]), 1, 1, 2 * FIVE).size == 0


def test_times_that_do_not_increase_are_refused() -> None:
    with pytest.raises(
        DataError, match=r"found 2010-08-26T00:05.* after 2010-08-26T00:05.* frame 2"
    ):
        valid_starts(times([0, 1, 1]), 1, 1, FIVE)


@pytest.mark.parametrize("setting", ["n_in", "n_out", "stride"])
def test_settings_below_one_are_refused(setting: str) -> None:
    settings = {"n_in": 1, "n_out": 1, setting: 0}
    with pytest.raises(SettingsError, match=f"{setting} must be at least 1, found 0"):
        valid_starts(times([0, 1]), step=FIVE, **settings)


def test_no_step_is_refused() -> None:
    with pytest.raises(SettingsError, match="step must be positive"):
        valid_starts(times([0, 1]), 1, 1, np.timedelta64(0, "s"))
