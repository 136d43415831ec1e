"""Readers of weather-radar files: polar scans of single radars and composites."""
