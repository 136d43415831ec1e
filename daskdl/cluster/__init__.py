"""Dask clusters: connections, queues, plugins, a client with deadlines; no samples or models."""

from daskdl.cluster.connection import connect

__all__ = ["connect"]
