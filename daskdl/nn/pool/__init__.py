"""Pooling, regions of interest, resampling."""
