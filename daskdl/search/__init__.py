"""Search: nearest codes or vectors, in memory or partitioned on a Dask cluster."""

from daskdl.search.hamming import HammingIndex, packed
from daskdl.search.vectors import VectorIndex

__all__ = ["HammingIndex", "VectorIndex", "packed"]
