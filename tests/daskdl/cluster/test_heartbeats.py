"""Heartbeats: who is silent, and who was only slow, or not heard by a busy scheduler."""

from __future__ import annotations

import time

import dask
import pytest

from daskdl.cluster.heartbeats import Heartbeats, interval


class Story:
    """Looks two seconds apart at workers that send or do not send."""

    def __init__(self, *workers: str) -> None:
        self.heartbeats, self.now = Heartbeats(), time.monotonic()
        self.seen = dict.fromkeys(workers, 1e9)

    def look(self, *senders: str, after: float = 2.0, times: int = 1) -> set[str]:
        for _ in range(times):
            self.now += after
            self.seen |= dict.fromkeys(senders, 1000000000.0 + self.now)
            self.heartbeats.look(self.seen, self.now)
        return set(self.heartbeats.silent)


@pytest.fixture
def story() -> Story:
    story = Story("a", "b", "c")
    story.look("a", "b", "c")
    return story


def test_who_sends_nothing_for_eight_seconds_while_others_do_is_silent(story: Story) -> None:
    assert story.look("a", "b", times=3) == set()
    assert story.look("a", "b") == {"c"}
    assert story.heartbeats.silent["c"] == 8
    assert story.look("a") == {"c"}
    assert story.look("a", times=4) == {"b", "c"}


def test_who_sends_again_was_slow_and_is_not_taken_for_silent_any_more(story: Story) -> None:
    assert story.look("a", "b", times=5) == {"c"}
    assert story.look("a", "b", "c") == set()
    assert story.look("a", "b", times=50) == set()
    assert story.look("a", times=5) == {"b"}


def test_a_scheduler_that_hears_nobody_is_what_is_silent(story: Story) -> None:
    assert story.look(times=50) == set()


@pytest.mark.parametrize("pause", [60, 3600])
def test_a_long_time_between_two_looks_counts_little(story: Story, pause: float) -> None:
    assert story.look("a", after=pause) == set()  # busy: it has not yet read what b and c sent
    assert story.look("a", "b", "c") == set()


def test_who_has_left_is_forgotten_and_who_joins_has_its_time(story: Story) -> None:
    story.look("a", "b", times=5)
    del story.seen["c"]
    assert story.look("a", "b") == set()
    story.seen["d"] = 1e9
    assert story.look("a", "b", times=4) == set()
    assert story.look("a", "b") == {"d"}


def test_the_time_is_a_setting_and_grows_where_heartbeats_are_rare() -> None:
    workers = [f"w{i}" for i in range(1000)]
    story = Story(*workers)
    story.look(*workers)
    assert interval(1000) == 6
    assert story.look(*workers[1:], times=14) == set()
    assert story.look(*workers[1:]) == {"w0"}
    with dask.config.set({"daskdl.heartbeat-timeout": "4 s"}):
        few = Story("a", "b")
        few.look("a", "b")
        assert few.look("a", times=2) == set()  # five that are missed, of one in a second
        assert few.look("a") == {"b"}
