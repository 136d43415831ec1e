"""Watching a fit: callbacks, history, progress and pictures."""
