"""Dask configuration of the clusters that :func:`daskdl.cluster.connect` starts."""

from __future__ import annotations

# Compression costs time and float32 does not compress. A shard stays where its partition lies.
CONFIG = {
    "distributed.comm.compression": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.connections.incoming": 1000,
    # Dask gives up a worker for good that is just starting again 15 s after it was lost before.
    "distributed.deploy.lost-worker-timeout": "1 day",
}

# A job that is lost has left the queue: after this time another is put there in its place.
QUEUE_CONFIG = {**CONFIG, "distributed.deploy.lost-worker-timeout": "60 s"}
