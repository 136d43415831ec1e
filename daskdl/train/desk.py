"""Desk: where the driver asks a gang's first member for groups and is given what comes of them."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any


class Desk:
    """Between the worker's event loop, which speaks to the driver, and the member's thread."""

    def __init__(self) -> None:
        self._words: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: dict[int, Future[Any]] = {}
        self._lock, self._left = threading.Lock(), False

    def put(self, word: Any) -> bool:
        """Say something to the member; False if it has left."""
        with self._lock:
            if not self._left:
                self._words.put(word)
            return not self._left

    def take(self, seconds: float) -> Any:
        """Return the next word for the member; None, and leave, if none comes in time."""
        with suppress(queue.Empty):
            return self._words.get(timeout=seconds)
        with self._lock:
            self._left = self._words.empty()
            return None if self._left else self._words.get()

    def give(self, first: int, answer: Any) -> None:
        """Answer, unless nobody waits any more."""
        with suppress(InvalidStateError):
            self.answer(first).set_result(answer)

    def answer(self, first: int) -> Future[Any]:
        """Return what the group that begins with iteration ``first`` is answered by."""
        with self._lock:
            return self._answers.setdefault(first, Future())

    def given(self, first: int) -> None:
        """Forget an answer."""
        with self._lock:
            self._answers.pop(first, None)

    def close(self) -> None:
        """Let nobody wait any more; None answers what has no answer."""
        with self._lock:
            self._left = True
            answers = [*self._answers.values()]
        self._words.put(None)
        for answer in answers:
            with suppress(InvalidStateError):
                answer.set_result(None)
