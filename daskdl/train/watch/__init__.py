"""Watching a fit: history, progress and pictures."""
