"""Dask configuration of the clusters that :func:`daskdl.cluster.connect` starts."""

from __future__ import annotations

from typing import Any

import dask

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

#: The setting by which Dask takes a worker that is silent for dead, and what it is by itself.
TTL, DASKS_TTL = "distributed.scheduler.worker-ttl", "5 minutes"


def patience() -> dict[str, Any]:
    """Return how long Dask's own tasks, as of lazy predictions, wait for a worker that is silent.

    Engines of a fit find such a worker sooner themselves. A setting of the user's own is kept.
    """
    return {TTL: "1 minute"} if dask.config.get(TTL, DASKS_TTL) == DASKS_TTL else {}
