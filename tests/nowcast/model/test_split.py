"""The split of archives into parts to train, to validate and to test on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.model.split import Split, split_by_rain

FRACTIONS = (0.6, 0.15)


def times(n: int, minutes: int = 5) -> np.ndarray:
    return np.datetime64("2020-02-07T13:00") + minutes * np.arange(n) * np.timedelta64(1, "m")


def inside(time: np.ndarray, split: Split) -> list[np.ndarray]:
    """Whether each time is in each part."""
    return [
        np.any([(time >= s.first) & (time <= s.last) for s in part], axis=0)
        for part in (split.train, split.validation, split.test)
    ]


@given(st.integers(12, 300), st.integers(0, 99), st.floats(0.3, 0.6), st.floats(0.1, 0.2))
def test_parts_follow_each_other_share_no_frame_and_hold_a_window(n, seed, train, validation):
    time = times(n)
    wet = np.random.default_rng(seed).gamma(0.3, 0.1, n)
    parts = inside(time, split_by_rain("s", time, wet, (train, validation), 4))
    assert (np.sum(parts, axis=0) == 1).all()
    assert min(part.sum() for part in parts) >= 4
    firsts = [int(np.argmax(part)) for part in parts]
    assert firsts == sorted(firsts)


def test_parts_have_their_shares_of_the_rain_and_a_dry_evening_is_no_test():
    time = times(288)
    wet = np.where(np.arange(288) < 144, 0.3, 0.0)  # rain until noon, then none
    _, validation, test = inside(time, split_by_rain("s", time, wet, FRACTIONS, 17))
    assert wet[test].sum() / wet.sum() == pytest.approx(0.25, abs=0.02)
    assert wet[validation].sum() / wet.sum() == pytest.approx(0.15, abs=0.02)


def test_a_cut_near_the_beginning_of_an_event_is_moved_there():
    time = times(200, 60)
    wet = np.zeros(200)
    for first in (0, 50, 100, 150):
        wet[first : first + 20] = 0.2
    split = split_by_rain("s", time, wet, (0.55, 0.2), 5)
    # Events of a quarter of the rain each: 0.55 is moved to 0.5 and 0.75 is right as it is.
    assert split.validation[0].first == time[100]
    assert split.test[0].first == time[150]


def test_seven_hours_are_enough():
    time = times(84)
    split = split_by_rain("s", time, np.full(84, 0.1), FRACTIONS, 17)
    assert [int(part.sum()) for part in inside(time, split)] == [50, 17, 17]


def test_a_store_without_rain_is_cut_by_its_frames():
    time = times(100)
    parts = inside(time, split_by_rain("s", time, np.zeros(100), FRACTIONS, 5))
    assert [int(part.sum()) for part in parts] == [60, 15, 25]


def test_too_few_frames_are_refused_with_the_options_that_help():
    with pytest.raises(DataError, match=r"s: expected at least 3 x 17 frames.* found 40.*--lead.*"):
        split_by_rain("s", times(40), np.ones(40), FRACTIONS, 17)


def test_there_and_back_as_plain_data():
    split = split_by_rain("s", times(40), np.ones(40), FRACTIONS, 2)
    assert Split.from_dict(split.to_dict()) == split
    assert split.of_store("test", "s") == list(split.test)
    assert split.of_store("test", "other") == []
