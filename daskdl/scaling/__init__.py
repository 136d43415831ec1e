"""Scaling: the time of an iteration on growing numbers of workers, and its parts."""
