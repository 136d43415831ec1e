"""Readers of polar volumes: sweeps of rays and gates, a format a file."""
