"""Times in UTC."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from nowcast.rain.utc import parse_utc, utc_text


@pytest.mark.parametrize(
    "text",
    [
        "2020-02-07T13:20",
        "2020-02-07 13:20:00",
        "2020-02-07T13:20Z",
        " 2020-02-07T13:20Z ",
        "20200207T1320",
        "2020-02-07T14:20+01:00",
        "2020-02-07T08:50-04:30",
    ],
)
def test_one_moment_in_many_words(text):
    assert parse_utc("--at", text) == np.datetime64("2020-02-07T13:20", "ns")


def test_a_day_is_its_midnight():
    assert parse_utc("--at", "2020-02-07") == np.datetime64("2020-02-07T00:00", "s")


@pytest.mark.parametrize(
    "text", ["", " ", "NaT", "now", "today", "latest", "2020-13-01", "13:20", "0001-01-01T00+14:00"]
)
def test_what_is_no_time_is_refused_in_its_words(text):
    with pytest.raises(
        SettingsError, match=r"--from: expected a time such as .* or 'x', found"
    ) as e:
        parse_utc("--from", text, others=" or 'x'")
    assert str(e.value).endswith(f"found {text!r}")


@given(st.datetimes())
def test_what_is_written_is_read_back(time):
    whole = time.replace(microsecond=0)
    text = utc_text(np.datetime64(whole, "us"))
    assert parse_utc("--at", text) == np.datetime64(whole, "us")
    assert len(text) == (16 if whole.second == 0 else 19)
