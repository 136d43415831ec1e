"""A connection to a cluster for a block of `with`, or for the cells of a notebook."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client


class Connection(AbstractContextManager["Client"]):
    """A connected client; the cluster that was started for it ends with the connection.

    It ends once: at the end of a `with` block, by `close`, when the object is no longer referenced,
    or at the end of the program. It has all other attributes of the client.
    """

    def __init__(self, opened: AbstractContextManager[Client]) -> None:
        self._stack = ExitStack()
        self.client = self._stack.enter_context(opened)
        self._end = weakref.finalize(self, self._stack.close)

    def __enter__(self) -> Client:
        # Do not enter the client's own context: on exit Dask restores the previous current client,
        # so that such blocks would have to be nested.
        return self.client

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error) if self._end.detach() else None

    def close(self) -> None:
        """Close the client, and end the cluster if it was started here."""
        self._end()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # such as names that copy looks up
            raise AttributeError(name)
        return getattr(self.client, name)

    def __repr__(self) -> str:
        return f"Connection({self.client!r})"

    def _repr_html_(self) -> str:
        return str(self.client._repr_html_())


class Counted(AbstractContextManager[None]):
    """A context that begins with the first entry and ends with the last exit.

    So connections may end in any order. ``made`` returns the context.
    """

    def __init__(self, made: Callable[[], AbstractContextManager[None]]) -> None:
        self._made, self._stack = made, ExitStack()
        self._inside, self._lock = 0, threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._stack.enter_context(self._made())
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._stack.close()
