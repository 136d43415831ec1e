"""Search: the nearest of many codes, in memory or partitioned on a Dask cluster."""

from daskdl.search.hamming import HammingIndex, packed

__all__ = ["HammingIndex", "packed"]
