"""Batch norm, and norms of a sample by itself."""
