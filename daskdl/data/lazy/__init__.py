"""Partitions made lazily: of others, of Dask's tasks, joined, counted, checked, in blocks."""
