"""Mailbox: requests from the driver to rank 0 of a collective, and its answers by number."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any


class Mailbox:
    """Passes requests from the worker's event loop, which hears the driver, to the rank."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: dict[int, Future[Any]] = {}
        self._lock, self._left = threading.Lock(), False

    def put(self, request: Any) -> bool:
        """Post a request; False if the rank has left."""
        with self._lock:
            if not self._left:
                self._requests.put(request)
            return not self._left

    def take(self, seconds: float) -> Any:
        """Wait for the next request; if none comes in time, leave and return None."""
        with suppress(queue.Empty):
            return self._requests.get(timeout=seconds)
        with self._lock:
            self._left = self._requests.empty()
            return None if self._left else self._requests.get()

    def give(self, first: int, answer: Any) -> None:
        """Answer request ``first``, unless the driver no longer waits."""
        with suppress(InvalidStateError):
            self.answer(first).set_result(answer)

    def answer(self, first: int) -> Future[Any]:
        """Return the Future of the answer to request ``first``."""
        with self._lock:
            return self._answers.setdefault(first, Future())

    def given(self, first: int) -> None:
        """Drop an answer."""
        with self._lock:
            self._answers.pop(first, None)

    def close(self) -> None:
        """Answer every open request with None, and take no more."""
        with self._lock:
            self._left = True
            answers = [*self._answers.values()]
        self._requests.put(None)
        for answer in answers:
            with suppress(InvalidStateError):
                answer.set_result(None)
