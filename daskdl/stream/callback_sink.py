"""Callback sink: answers handed to a function on the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from daskdl.stream.protocols import Reader
from daskdl.stream.records import Output, Partition


class CallbackSink:
    """Outputs handed to a function on the workers, batch by batch, at least once.

    Parameters
    ----------
    function : callable
        Gets a list of :class:`~daskdl.stream.Output`; when it returns they are safe, and when it
        raises they come again. It pickles.

    Examples
    --------
    >>> from daskdl.stream import Partition, Record
    >>> sink = CallbackSink(lambda outputs: print([o.value for o in outputs]))
    >>> record = Record(Partition("calls", 0), 0, 0, None, b"hello")
    >>> sink.writer(slot=0).write([Output(record, "answers", b"greeting")])
    [b'greeting']
    """

    exactly_once = False

    def __init__(self, function: Callable[[list[Output]], Any]) -> None:
        self.function = function

    def check(self, partitions: Sequence[Partition], topics: Sequence[str]) -> None:
        """Do nothing."""

    def fence(self, slot: int) -> None:
        """Do nothing."""

    def writer(self, slot: int) -> CallbackWriter:
        """Return a writer."""
        return CallbackWriter(self.function)


class CallbackWriter:
    """Hands outputs to a function.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, function: Callable[[list[Output]], Any]) -> None:
        self._function = function

    def write(self, outputs: Sequence[Output]) -> None:
        """Hand outputs over."""
        self._function(list(outputs))

    def commit(self, reader: Reader, positions: Mapping[Partition, int]) -> None:
        """Commit the offsets."""
        reader.commit(positions)

    def give_up(self) -> None:
        """Do nothing: it waits for nobody."""

    def close(self) -> None:
        """Do nothing."""
