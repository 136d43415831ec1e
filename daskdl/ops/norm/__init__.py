"""Batch norm, and norms of single samples."""
