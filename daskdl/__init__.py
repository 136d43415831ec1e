"""Deep learning on Dask clusters of CPUs."""

from __future__ import annotations

__version__ = "0.1.0"
