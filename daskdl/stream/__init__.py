"""Live streams: records that arrive on a queue, answered by a model on Dask workers.

The engine is :class:`Stream`. A driver gives partitions to sessions, one on each worker; each reads
by assignment, predicts in batches, writes and commits. ``Source`` and ``Sink`` are the protocols of
queues.
"""

from daskdl.stream.callback_sink import CallbackSink
from daskdl.stream.callback_source import CallbackSource
from daskdl.stream.directory_sink import DirectorySink
from daskdl.stream.directory_source import DirectorySource
from daskdl.stream.kafka_clients import Brokers
from daskdl.stream.kafka_sink import KafkaSink
from daskdl.stream.kafka_source import KafkaSource
from daskdl.stream.orders import Limits
from daskdl.stream.protocols import Reader, Sink, Source, Writer
from daskdl.stream.records import Output, Partition, Record
from daskdl.stream.routing import Routes
from daskdl.stream.served import ModelFile, text_metadata
from daskdl.stream.stream import Stream

__all__ = [
    "Brokers",
    "CallbackSink",
    "CallbackSource",
    "DirectorySink",
    "DirectorySource",
    "KafkaSink",
    "KafkaSource",
    "Limits",
    "ModelFile",
    "Output",
    "Partition",
    "Reader",
    "Record",
    "Routes",
    "Sink",
    "Source",
    "Stream",
    "Writer",
    "text_metadata",
]
