"""Events: spells of rain."""

from __future__ import annotations

import numpy as np

from nowcast.rain.events import event_labels

START = np.datetime64("2020-05-01T00:00")


def labels(hours: list[float], wet: list[float], archive: list[int] | None = None) -> list[int]:
    time = START + (np.array(hours) * 60).astype("timedelta64[m]")
    numbers = np.zeros(len(hours), int) if archive is None else np.array(archive)
    return event_labels(numbers, time, np.array(wet)).tolist()


def test_a_long_dry_pause_ends_an_event_and_a_short_one_does_not() -> None:
    assert labels([0, 1, 4, 6], [0.1, 0.1, 0.0, 0.1]) == [0, 0, 0, 0]
    assert labels([0, 1, 4, 7, 8], [0.1, 0.1, 0.0, 0.1, 0.1]) == [0, 0, 0, 1, 1]


def test_dry_cases_belong_to_the_event_before() -> None:
    assert labels([0, 7, 9], [0.1, 0.0, 0.001]) == [0, 0, 0]


def test_lasting_rain_is_cut_by_the_day() -> None:
    hours = np.arange(0, 60, 0.5).tolist()
    found = labels(hours, [0.3] * len(hours))
    assert sorted(set(found)) == [0, 1, 2]
    assert found.index(1) == 48


def test_another_archive_is_another_event() -> None:
    assert labels([0, 1, 0, 1], [0.1] * 4, [0, 0, 1, 1]) == [0, 0, 1, 1]
