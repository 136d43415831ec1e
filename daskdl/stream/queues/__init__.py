"""Queues: sources of records and sinks of answers."""
