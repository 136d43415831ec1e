"""Records that a stream reads, and outputs that it writes for them."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Partition(NamedTuple):
    """A part of a topic whose records have an order.

    Parameters
    ----------
    topic : str
    number : int
        Number from 0.

    Examples
    --------
    >>> str(Partition("calls", 3))
    'calls/3'
    """

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


class Record(NamedTuple):
    """One message of a source.

    Parameters
    ----------
    partition : Partition
    offset : int
        Place in the partition, from 0; numbers may be missing.
    timestamp : int
        Time at the broker, milliseconds since 1970; 0 if not known.
    key, value : bytes or None
    damage : str
        Why it could not be read; then it is a dead letter.

    Examples
    --------
    >>> Record(Partition("calls", 3), 17, 0, None, b"hello").place
    'calls/3/17'
    """

    partition: Partition
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    damage: str = ""

    @property
    def place(self) -> str:
        """Topic, partition and offset in the form of its answer's key: ``calls/3/17``."""
        return f"{self.partition.topic}/{self.partition.number}/{self.offset}"


class Output(NamedTuple):
    """One message for a sink: the answer to a record, or the record as a dead letter.

    Parameters
    ----------
    record : Record
    topic : str
        Topic; for a sink without topics, a name of its kind.
    value : bytes or None
    headers : tuple of (str, bytes)

    Examples
    --------
    >>> record = Record(Partition("calls", 0), 5, 0, None, b"hello")
    >>> as_json(Output(record, "answers", b'{"label": "billing"}'))
    '{"place": "calls/0/5", "answer": {"label": "billing"}}'
    """

    record: Record
    topic: str
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


def dead_letter(record: Record, topic: str, reason: str, **more: str) -> Output:
    """Return a record as a dead letter: its bytes, with reason and place as headers."""
    headers: dict[str, Any] = {
        "reason": reason.encode(),
        "topic": record.partition.topic.encode(),
        "partition": str(record.partition.number).encode(),
        "offset": str(record.offset).encode(),
        "timestamp": str(record.timestamp).encode(),
        **{name: value.encode() for name, value in more.items()},
    }
    if record.key is not None:
        headers["key"] = record.key
    return Output(record, topic, record.value, tuple(headers.items()))


def as_json(output: Output) -> str:
    """Return an output as a line of JSON, for sinks other than brokers."""
    value = None if output.value is None else output.value.decode(errors="replace")
    if not output.headers:  # an answer, which is JSON already
        return f'{{"place": {json.dumps(output.record.place)}, "answer": {value}}}'
    headers = {name: content.decode(errors="replace") for name, content in output.headers}
    return json.dumps({"place": output.record.place, **headers, "value": value})
