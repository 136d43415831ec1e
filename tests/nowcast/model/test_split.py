"""The split by time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.model.split import Split, split_by_time


def times(n: int) -> np.ndarray:
    return np.datetime64("2020-02-07T13:00") + 5 * np.arange(n) * np.timedelta64(1, "m")


@given(st.integers(30, 300), st.floats(0.3, 0.6), st.floats(0.15, 0.2))
def test_parts_follow_each_other_and_share_no_frame(n, train, validation):
    time = times(n)
    split = split_by_time(time, (train, validation), 4)
    assert split.train[0] == time[0]
    assert split.test[1] == time[-1]
    assert split.train[1] < split.validation[0] <= split.validation[1] < split.test[0]
    inside = [
        ((time >= first) & (time <= last)).sum()
        for first, last in (split.train, split.validation, split.test)
    ]
    assert sum(inside) == n
    assert abs(inside[0] - n * train) <= 0.5


def test_a_part_too_short_for_a_window_is_named():
    with pytest.raises(DataError, match=r"the validation part of 40 frames holds 4.*17 frames"):
        split_by_time(times(40), (0.6, 0.1), 17)


def test_there_and_back_as_plain_data():
    split = split_by_time(times(40), (0.5, 0.2), 2)
    assert Split.from_dict(split.to_dict()) == split
