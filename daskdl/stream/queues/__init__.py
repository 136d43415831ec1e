"""Queues: what a stream reads its records from and writes its answers to."""
