"""Readers of rain maps and composites: a grid a time, a format a file."""
