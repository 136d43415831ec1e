"""Callback source and sink: records from functions, and answers to a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from daskdl.stream.queues.protocols import Places, Reader, Sink, Source, Writer
from daskdl.stream.queues.records import Output, Partition, Record


class CallbackSource(Source):
    """Records from functions, which workers call; they must pickle.

    Parameters
    ----------
    read : callable
        ``read(partition, offset, limit)`` returns up to ``limit`` values, bytes, of a partition (a
        number) from an offset on; none if there are none yet. An offset always has the same value.
    committed : callable
        ``committed(partition)`` returns the committed offset, at first 0.
    commit : callable
        ``commit(partition, offset)`` stores it for all workers.
    partitions : int
    group : str

    Examples
    --------
    >>> held, done = [b"1", b"2", b"3"], {0: 0}
    >>> def read(partition, offset, limit):
    ...     return held[offset : offset + limit]
    >>> source = CallbackSource(read, done.get, done.__setitem__)
    >>> reader = source.reader("run")
    >>> reader.assign(source.partitions())
    >>> [record.value for record in reader.poll(2, wait=0)], reader.positions()
    ([b'1', b'2'], {Partition(topic='callback', number=0): 2})
    """

    def __init__(
        self,
        read: Callable[[int, int, int], Sequence[bytes]],
        committed: Callable[[int], int],
        commit: Callable[[int, int], None],
        partitions: int = 1,
        group: str = "callback",
    ) -> None:
        self.read, self.committed, self.commit = read, committed, commit
        self.count, self.group = partitions, group

    def partitions(self) -> list[Partition]:
        """Return all partitions."""
        return [Partition(self.group, number) for number in range(self.count)]

    def reader(self, run: str) -> CallbackReader:
        """Return a reader without partitions."""
        return CallbackReader(self)


class CallbackReader(Places):
    """Reads assigned partitions by the functions of a source."""

    def __init__(self, source: CallbackSource) -> None:
        super().__init__()
        self._source = source

    def assign(self, partitions: Sequence[Partition]) -> None:
        """Read these and no others; what was not read before, from its committed offset on."""
        self._next = {
            p: self._next[p] if p in self._next else self._source.committed(p.number)
            for p in partitions
        }
        self._at_end &= set(partitions)

    def poll(self, limit: int, wait: float) -> list[Record]:
        """Return up to ``limit`` records of the first partition that has some."""
        for partition in sorted(self._next, key=lambda p: p in self._at_end):
            first = self._next[partition]
            values = self._source.read(partition.number, first, limit)
            if values:
                self._next[partition] = first + len(values)
                self._at_end.discard(partition)
                now = int(time.time() * 1000)
                return [Record(partition, first + i, now, None, v) for i, v in enumerate(values)]
            self._at_end.add(partition)
        time.sleep(wait)
        return []

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Commit offsets."""
        for partition, offset in positions.items():
            self._source.commit(partition.number, offset)


class CallbackSink(Sink):
    """Outputs passed to a function on the workers, batch by batch, at least once.

    Parameters
    ----------
    function : callable
        Gets a list of :class:`~daskdl.stream.Output`. When it returns they are safe; when it raises
        they come again. It must pickle.

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

    def writer(self, slot: int) -> CallbackWriter:
        """Return a writer."""
        return CallbackWriter(self.function)


class CallbackWriter(Writer):
    """Passes outputs to a function."""

    def __init__(self, function: Callable[[list[Output]], Any]) -> None:
        self._function = function

    def write(self, outputs: Sequence[Output]) -> None:
        """Pass outputs on."""
        self._function(list(outputs))

    def commit(self, reader: Reader, positions: Mapping[Partition, int]) -> None:
        """Commit the offsets."""
        reader.commit(positions)
