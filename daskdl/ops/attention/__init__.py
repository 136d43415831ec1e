"""Attention, and rows of an embedding table."""
