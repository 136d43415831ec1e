"""Arguments that are words and mean numbers."""

from __future__ import annotations

import pytest

from daskdl.errors import SettingsError
from nowcast.commands.arguments import lead_minutes, numbers


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        (None, None),
        ("90", 90),
        ("60min", 60),
        (" 60 min ", 60),
        ("45 Minutes", 45),
        ("30m", 30),
        ("1h", 60),
        ("1.5 hours", 90),
        ("0.5H", 30),
    ],
)
def test_lead_times(text, minutes):
    assert lead_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "soon", "0", "0min", "-5", "5s", "1h30", "1e2", "nan", "1.h"])
def test_what_is_no_lead_time_is_quoted(text):
    with pytest.raises(SettingsError, match="--lead: expected a time such as 60min or 1h") as error:
        lead_minutes(text)
    assert f"found {text!r}; give a number" in str(error.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [("1", (1.0,)), ("0.1,1,5", (0.1, 1.0, 5.0)), (" 5 , 1e-1 ", (0.1, 5.0)), ("1,1,1.0", (1.0,))],
)
def test_numbers_are_sorted_and_each_is_there_once(text, values):
    assert numbers("--scales", text) == values


@pytest.mark.parametrize("text", ["", ",", "1,", "one", "1;2", "nan", "1,inf"])
def test_what_are_no_numbers_is_quoted_with_its_option(text):
    with pytest.raises(SettingsError, match="--scales: expected numbers with commas") as error:
        numbers("--scales", text)
    assert f"found {text!r}; write 0.1" in str(error.value)
