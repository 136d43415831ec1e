"""Live streams: records that arrive on a queue, answered by a model on Dask workers.

The engine is :class:`Stream`. A driver assigns partitions to sessions, one on each worker. A
session reads, predicts in batches, writes and commits. ``Source`` and ``Sink`` are the protocols of
queues.
"""

from daskdl.stream.driver.stream import Stream
from daskdl.stream.queues.callback import CallbackSink, CallbackSource
from daskdl.stream.queues.directory import DirectorySink, DirectorySource
from daskdl.stream.queues.kafka_clients import Brokers
from daskdl.stream.queues.kafka_sink import KafkaSink
from daskdl.stream.queues.kafka_source import KafkaSource
from daskdl.stream.queues.protocols import Reader, Sink, Source, Writer
from daskdl.stream.queues.records import Output, Partition, Record
from daskdl.stream.worker.messages import Routes
from daskdl.stream.worker.model_file import ModelFile, text_metadata
from daskdl.stream.worker.orders import Limits

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
