"""Which forecasts are made, and when they are scored."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError, SettingsError
from nowcast.verification import valid_starts
from nowcast.verification.archive import own_times, schedule

STEP = np.timedelta64(5, "m")


def times(frames: list[int]) -> np.ndarray:
    return np.datetime64("2010-08-26T00:00", "ns") + np.array(frames) * STEP


@given(
    st.sets(st.integers(0, 40), min_size=2),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_all_leads_share_their_times_and_no_gap_is_bridged(frames, n_in, count, every):
    there = sorted(frames)
    leads = [every * k for k in range(1, count + 1)]
    starts, scored = schedule(times(there), n_in, leads, STEP, every=every)
    number = np.array(there)
    valid: list[list[int]] = [[] for _ in leads]
    for start, use in zip(starts, scored, strict=True):
        assert (np.diff(number[start - n_in : start]) == 1).all()
        for k, lead in enumerate(leads):
            if use[k]:
                # The frames from the first input to the valid one follow each other.
                whole = number[start - n_in : start + lead]
                assert (np.diff(whole) == 1).all()
                assert len(whole) == n_in + lead
                valid[k].append(int(number[start + lead - 1]))
    assert all(one == valid[0] for one in valid)
    assert scored.any(1).all()
    if every == 1:
        # Nothing that could be scored is left out.
        span = n_in + max(leads)
        whole = [f for f in there if all(f - j in frames for j in range(span))]
        assert valid[0] == whole


def test_own_times_score_all_leads_of_a_start():
    starts, scored = own_times(times(list(range(12))), 2, [1, 2, 3], STEP, every=4)
    assert starts.tolist() == [2, 6]
    assert scored.all()


@given(
    st.sets(st.integers(0, 40), max_size=30),
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(1, 9),
)
def test_valid_starts_are_those_of_runs_without_a_gap(frames, n_in, n_out, stride):
    present = sorted(frames)
    every = [
        i
        for i, frame in enumerate(present)
        if all(frame + k in frames for k in range(-n_in, n_out))
    ]
    time = times(present)
    assert valid_starts(time, n_in, n_out, STEP).tolist() == every
    apart = valid_starts(time, n_in, n_out, STEP, stride=stride).tolist()
    assert set(apart) <= set(every)
    assert all(b - a >= stride for a, b in pairwise(apart))
    assert apart[:1] == every[:1]


def test_scans_some_seconds_off_make_a_run_and_a_lost_scan_breaks_it():
    late = np.array([0, 20, -5, 0, 10, 0]) * np.timedelta64(1, "s")
    time = times([0, 1, 2, 4, 5, 6]) + late
    assert valid_starts(time, 2, 1, STEP).tolist() == [2, 5]


def test_frames_twice_as_dense_have_another_step():
    assert valid_starts(times([0, 1, 2, 3]), 1, 1, 2 * STEP).size == 0


def test_times_that_do_not_increase_are_refused():
    with pytest.raises(
        DataError, match=r"found 2010-08-26T00:05.* after 2010-08-26T00:05.* frame 2"
    ):
        valid_starts(times([0, 1, 1]), 1, 1, STEP)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        *(
            ({name: 0}, f"{name} must be at least 1, found 0")
            for name in ("n_in", "n_out", "stride")
        ),
        ({"step": 0 * STEP}, "step must be positive"),
        ({"tolerance": 0.6}, "tolerance must be from 0 to 0.5 of a step, found 0.6"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, message):
    with pytest.raises(SettingsError, match=message):
        valid_starts(times([0, 1]), **{"n_in": 1, "n_out": 1, "step": STEP} | setting)
