"""Exceptions in tasks reach the caller as themselves, with where they happened."""

from __future__ import annotations

import pickle
import threading

import distributed  # noqa: F401  which teaches pickle all exceptions that there are by then
import pytest

from daskdl.cluster.failures import TaskError
from daskdl.errors import TrainingError


class Unpicklable(Exception):  # noqa: N818
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()


class TwoArguments(Exception):  # noqa: N818
    """Pickles, but does not come back."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize(
    ("cause", "kind", "said"),
    [
        (KeyError("x"), KeyError, "shard 3: KeyError: 'x'"),
        (Unpicklable("no"), RuntimeError, "shard 3: RuntimeError: Unpicklable: no"),
        (TwoArguments("a", "b"), RuntimeError, "shard 3: RuntimeError: TwoArguments: a and b"),
    ],
)
def test_an_error_pickles_whatever_its_cause(
    cause: Exception, kind: type[Exception], said: str
) -> None:
    raised, came_from = pickle.loads(pickle.dumps(TaskError("shard 3", cause))).for_caller()
    assert isinstance(raised, TrainingError)
    assert str(raised) == said
    assert type(came_from) is kind
