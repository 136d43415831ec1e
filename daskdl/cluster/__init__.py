"""Dask's plumbing: connect, queues, plugins, a client with deadlines; no samples, no models."""

from daskdl.cluster.connection import connect

__all__ = ["connect"]
