"""Workers that are silent, and exceptions on their way to the caller."""

from __future__ import annotations

import pickle
import threading
import time

import dask
import distributed  # noqa: F401  registers the exceptions that exist by then with pickle
import pytest

from daskdl.cluster.failures import TaskError
from daskdl.cluster.losses import Heartbeats, interval
from daskdl.errors import TrainingError


class Story:
    """Looks two seconds apart at workers that send or do not send."""

    def __init__(self, *workers: str) -> None:
        # Whole seconds: sums of others are rounded, and may fall short of the limit.
        self.heartbeats, self.now = Heartbeats(), float(round(time.monotonic()))
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


def test_a_worker_that_sends_nothing_for_eight_seconds_is_silent(story: Story) -> None:
    assert story.look("a", "b", times=3) == set()
    assert story.look("a", "b") == {"c"}
    assert story.heartbeats.silent["c"] == 8
    assert story.look("a") == {"c"}
    assert story.look("a", times=4) == {"b", "c"}


def test_a_worker_that_sends_again_is_not_silent_any_more(story: Story) -> None:
    assert story.look("a", "b", times=5) == {"c"}
    assert story.look("a", "b", "c") == set()
    assert story.look("a", "b", times=50) == set()
    assert story.look("a", times=5) == {"b"}


def test_no_worker_is_silent_if_the_scheduler_hears_nobody(story: Story) -> None:
    assert story.look(times=50) == set()


@pytest.mark.parametrize("pause", [60, 3600])
def test_a_long_time_between_two_looks_counts_little(story: Story, pause: float) -> None:
    assert story.look("a", after=pause) == set()  # the scheduler has not yet read b and c
    assert story.look("a", "b", "c") == set()


def test_a_worker_that_left_is_forgotten_and_a_new_one_has_its_time(story: Story) -> None:
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
        assert few.look("a", times=2) == set()  # in 4 s, less than five are missed
        assert few.look("a") == {"b"}


class Unpicklable(Exception):  # noqa: N818
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


class TwoArguments(Exception):  # noqa: N818
    """Pickles, but does not unpickle."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize(
    ("cause", "kind", "message"),
    [
        (KeyError("x"), KeyError, "shard 3: KeyError: 'x'"),
        (Unpicklable("no"), RuntimeError, "shard 3: RuntimeError: Unpicklable: no"),
        (TwoArguments("a", "b"), RuntimeError, "shard 3: RuntimeError: TwoArguments: a and b"),
    ],
)
def test_an_error_pickles_whatever_its_cause(
    cause: Exception, kind: type[Exception], message: str
) -> None:
    raised, came_from = pickle.loads(pickle.dumps(TaskError("shard 3", cause))).for_caller()
    assert isinstance(raised, TrainingError)
    assert str(raised) == message
    assert type(came_from) is kind
